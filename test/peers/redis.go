package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// leased is Redis as it is mostly used for this: a lock is a key with a time to live, and only its
// writer deletes it. Nothing fences a holder whose time is over.
type leased struct{ client *redis.Client }

const (
	lease     = 30 * time.Second
	retention = 24 * time.Hour
)

// begin takes the workflow, unless the event is known: {answer}, or {} when somebody else has it.
var begin = redis.NewScript(`
local answer = redis.call('GET', KEYS[2])
if answer then return {1, answer} end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return {2, ''} end
return {0, ''}`)

// end keeps the answer and frees the workflow if it is still ours.
var end = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
redis.call('DEL', KEYS[1])
return 1`)

func openRedis(ctx context.Context, store string, _ int) (guard, error) {
	client := redis.NewClient(&redis.Options{Addr: store, PoolSize: 256, MaxRetries: -1})
	return &leased{client}, client.Ping(ctx).Err()
}

func (l *leased) close() { _ = l.client.Close() }

func (l *leased) run(ctx context.Context, workflow, event string, work func() []byte) ([]byte, error) {
	keys, token := []string{"lock:" + workflow, "event:" + event}, strconv.FormatUint(rand.Uint64(), 36)
	for {
		said, err := begin.Run(ctx, l.client, keys, token, lease.Milliseconds()).Slice()
		if err != nil {
			return nil, err
		}
		switch said[0] {
		case int64(1):
			answer, _ := said[1].(string)
			return []byte(answer), nil
		case int64(2):
			body := work()
			kept, err := end.Run(ctx, l.client, keys, token, body, retention.Milliseconds()).Int()
			if err == nil && kept == 0 {
				err = errors.New("the lease ended before the work")
			}
			return body, err
		}
		// Nothing tells that a lock is free: a waiter asks again, as clients' libraries do, and
		// more often than most of them.
		select {
		case <-time.After(5*time.Millisecond + rand.N(10*time.Millisecond)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
