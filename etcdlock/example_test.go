package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
)

// openExample is a Store on an etcd of its own. A program opens one Store with the endpoints of its
// etcd and keeps it.
func openExample() (store *etcdlock.Store, stop func()) {
	etcd, stopEtcd := etcdtest.ForExample()
	store, err := etcdlock.Open(etcdlock.Options{Endpoints: []string{etcd.Endpoint}, Prefix: "/billing",
		Holder: "billing-1"})
	if err != nil {
		log.Panic(err)
	}
	return store, func() {
		_ = store.Close(context.Background())
		stopEtcd()
	}
}

// One thing at a time for each customer, over all processes. The token goes along with the work.
func ExampleLocker_Do() {
	store, stop := openExample()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	err := store.Locker.Do(ctx, "customer/acme", func(ctx context.Context) error {
		select {
		case <-time.After(time.Millisecond): // the work, with etcdlock.Token(ctx)
			fmt.Println("charged, token is set:", etcdlock.Token(ctx) > 0)
			return nil
		case <-ctx.Done(): // the lock was lost, or the time is up
			return context.Cause(ctx)
		}
	})
	fmt.Println(err)
	// Output:
	// charged, token is set: true
	// <nil>
}

// Whoever does not want to wait is told who has the lock.
func ExampleLocker_TryAcquire() {
	store, stop := openExample()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := store.WaitReady(ctx); err != nil {
		log.Panic(err)
	}

	first, err := store.Locker.TryAcquire(ctx, "customer/acme")
	fmt.Println(err)

	_, err = store.Locker.TryAcquire(ctx, "customer/acme")
	var held *etcdlock.HeldError
	fmt.Println(errors.As(err, &held), held.Execution == first.Execution())

	fmt.Println(first.Unlock(ctx))
	// Output:
	// <nil>
	// true true
	// <nil>
}

// Whoever waits gets the lock in the order of arrival.
func ExampleLocker_Acquire() {
	store, stop := openExample()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	lock, err := store.Locker.Acquire(ctx, "customer/acme")
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("working, token is set:", lock.Token() > 0)
	select {
	case <-lock.Lost():
		fmt.Println("lost:", lock.Err()) // stop: somebody else may begin
	default:
	}
	if err := lock.Unlock(ctx); errors.Is(err, etcdlock.ErrLockLost) {
		fmt.Println("somebody else had it meanwhile")
	}
	// Output:
	// working, token is set: true
}
