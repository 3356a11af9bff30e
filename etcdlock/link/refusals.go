package link

import (
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// ErrNotSent says that the request provably never left this process.
var ErrNotSent = errors.New("request was not sent")

// never are the answers after which a transaction has not been applied and never will be.
// Everything else may mean anything: measured, up to 16 s later. ErrNoSpace is missing on purpose:
// etcd applies the transaction first and then says it.
var never = []error{
	ErrNotSent,
	rpctypes.ErrLeaseNotFound, // one missing lease fails the whole request
	rpctypes.ErrTooManyOps, rpctypes.ErrDuplicateKey, rpctypes.ErrEmptyKey, rpctypes.ErrRequestTooLarge,
	rpctypes.ErrTooManyRequests,                  // refused before it was proposed
	rpctypes.ErrCorrupt,                          // under that alarm nothing is applied
	rpctypes.ErrCompacted, rpctypes.ErrFutureRev, // of a read
	rpctypes.ErrPermissionDenied, rpctypes.ErrAuthOldRevision, rpctypes.ErrInvalidAuthToken, rpctypes.ErrUserEmpty,
	rpctypes.ErrAuthFailed,
}

// Definite reports whether a request that got err was not applied and never will be.
func Definite(err error) bool {
	for _, e := range never {
		if errors.Is(err, e) {
			return true
		}
	}
	return TooLarge(err)
}

// TooLarge reports whether err says that the request was refused for its size: by etcd above
// --max-request-bytes, or by gRPC, at either end, which takes 512 KiB more. It was not applied, and
// the same request would be refused again.
func TooLarge(err error) bool {
	if errors.Is(err, rpctypes.ErrRequestTooLarge) {
		return true
	}
	s, _ := grpcstatus.FromError(err) // an error of gRPC itself: clientv3 leaves it as it is
	return s.Code() == codes.ResourceExhausted && strings.HasPrefix(s.Message(), "grpc: ") &&
		strings.Contains(s.Message(), "larger than max")
}

// Fencing reports whether a transaction that got err may still be on its way. etcd returns
// ErrNoSpace after it has applied or refused it, so then reading is enough; and under that alarm a
// fence would be refused itself.
func Fencing(err error) bool { return !errors.Is(err, rpctypes.ErrNoSpace) }

// Refuses reports whether an alarm is the reason of err: etcd refuses every further attempt until
// an operator has disarmed it.
func Refuses(err error) bool {
	return errors.Is(err, rpctypes.ErrNoSpace) || errors.Is(err, rpctypes.ErrCorrupt)
}

// MemberAlone reports whether a definite error of a batch may be the fault of one of its members,
// or of the size of all.
func MemberAlone(err error) bool {
	return Definite(err) && !errors.Is(err, ErrNotSent) && !errors.Is(err, rpctypes.ErrTooManyRequests) && !Refuses(err)
}
