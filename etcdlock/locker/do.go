package locker

import (
	"context"
	"errors"
)

type tokenKey struct{}

// Token returns the token of the lock that Do runs its function under. The function sends it along
// with its work, so that the receiver can refuse a smaller one. It returns 0 if ctx is not from Do.
func Token(ctx context.Context) int64 {
	token, _ := ctx.Value(tokenKey{}).(int64)
	return token
}

// Do waits for the lock of a workflow like Acquire, runs fn, and gives the lock back, also if fn
// panics.
//
// The context of fn ends with ctx, and if the lock is lost; then context.Cause is ErrLockLost, and
// fn should stop at once, because another holder may begin. A frozen process cannot know that it
// has lost its lock, so fn sends Token along with its work.
//
// The error is that of fn, joined with ErrLockLost if the lock was lost before fn returned, and
// with ErrNotReleased if etcd did not answer in the end. nil means that no other process had the
// lock until fn was done.
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
