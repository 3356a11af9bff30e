package link

import (
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// ErrNotSent says that the request provably never left this process.
var ErrNotSent = errors.New("request was not sent")

// never are the answers after which a transaction has not been applied and never will be. Everything else may mean anything:
// measured, up to 16 s later. ErrNoSpace is missing on purpose: etcd applies the transaction first and then says it.
var never = []error{
	ErrNotSent,
	rpctypes.ErrLeaseNotFound, // one missing lease fails the whole request
	rpctypes.ErrTooManyOps, rpctypes.ErrDuplicateKey, rpctypes.ErrEmptyKey, rpctypes.ErrRequestTooLarge,
	rpctypes.ErrTooManyRequests,                  // refused before it was proposed
	rpctypes.ErrCompacted, rpctypes.ErrFutureRev, // of a read
	rpctypes.ErrPermissionDenied, rpctypes.ErrAuthOldRevision, rpctypes.ErrInvalidAuthToken, rpctypes.ErrUserEmpty, rpctypes.ErrAuthFailed,
}

// Definite reports whether a request that got err was not applied and never will be.
func Definite(err error) bool {
	for _, e := range never {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Fencing reports whether a transaction that got err may still be on its way. etcd returns ErrNoSpace after it has applied or refused it, so
// then reading is enough; and under that alarm a fence would be refused itself.
func Fencing(err error) bool { return !errors.Is(err, rpctypes.ErrNoSpace) }

// MemberAlone reports whether a definite error of a batch may be the fault of one of its members.
func MemberAlone(err error) bool {
	return Definite(err) && !errors.Is(err, ErrNotSent) && !errors.Is(err, rpctypes.ErrTooManyRequests)
}
