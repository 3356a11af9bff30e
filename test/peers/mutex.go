package main

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// mutex is etcd's own lock as its client has it, and a record that is written only while the lock
// is held.
type mutex struct {
	client *clientv3.Client
	// A Mutex's key is its session's lease: two callers with one session would be the same holder,
	// and both would run. So each has its own.
	idle chan *concurrency.Session
}

// sessions is how many events may run or wait at a time.
const sessions = 256

func openMutex(ctx context.Context, store string, _ int) (guard, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{store}, Context: ctx})
	if err != nil {
		return nil, err
	}
	m := &mutex{client, make(chan *concurrency.Session, sessions)}
	for range sessions {
		s, err := concurrency.NewSession(client, concurrency.WithTTL(15))
		if err != nil {
			m.close()
			return nil, err
		}
		m.idle <- s
	}
	return m, nil
}

// close leaves the leases to run out: the etcd ends, too.
func (m *mutex) close() { _ = m.client.Close() }

func (m *mutex) run(ctx context.Context, workflow, event string, work func() []byte) (body []byte, err error) {
	session := <-m.idle
	defer func() { m.idle <- session }()
	lock := concurrency.NewMutex(session, "/locks/"+workflow)
	if err := lock.Lock(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock(context.WithoutCancel(ctx))) }()
	key := "/events/" + event
	found, err := m.client.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(found.Kvs) > 0 {
		return found.Kvs[0].Value, nil
	}
	body = work()
	kept, err := m.client.Txn(ctx).If(lock.IsOwner()).Then(clientv3.OpPut(key, string(body))).Commit()
	if err == nil && !kept.Succeeded {
		err = errors.New("the lock was lost before the work ended")
	}
	return body, err
}
