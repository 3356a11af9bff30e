package locker

import (
	"context"
	"errors"
)

type tokenKey struct{}

// Token is the token of the lock that Do runs its function under, to be sent along with what that
// does; see Lock.Token. 0 = ctx is not from Do.
func Token(ctx context.Context) int64 {
	token, _ := ctx.Value(tokenKey{}).(int64)
	return token
}

// Do waits for the lock of workflow like Acquire, runs fn while it is held, and gives it back, also
// when fn panics.
//
// The context of fn ends with ctx, and when the lock is lost; context.Cause is then ErrLockLost. fn
// should stop at once: another holder may begin. It is told as early as this process can know,
// which a frozen process cannot; so fn sends Token along.
//
// The error is fn's, joined with ErrLockLost where the lock was lost before fn returned, and with
// ErrNotReleased where etcd did not answer in the end. nil says that no other process had the lock
// until fn was done.
func (s *Locker) Do(ctx context.Context, workflow string, fn func(context.Context) error) (err error) {
	l, err := s.Acquire(ctx, workflow)
	if err != nil {
		return err
	}
	running, stop := context.WithCancelCause(context.WithValue(ctx, tokenKey{}, l.Token()))
	unhook := context.AfterFunc(l.life, func() { stop(l.Err()) })
	defer func() {
		unhook()
		stop(context.Canceled)
		// the Store goes on by itself
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.locks.Pool.Txn)
		defer cancel()
		lost := l.Err()
		if unlock := l.Unlock(bounded); lost == nil {
			lost = unlock
		}
		if lost != nil {
			err = errors.Join(err, lost)
		}
	}()
	return fn(running)
}
