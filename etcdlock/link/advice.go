package link

import (
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// MakeRoom says what ends the alarm NOSPACE.
const MakeRoom = "compact and defragment it or raise its quota, then disarm the NOSPACE alarm"

// advices say what an operator can do about an answer of etcd.
var advices = []struct {
	answer error
	advice string
}{
	{rpctypes.ErrNoSpace, "etcd is out of space: " + MakeRoom},
	{rpctypes.ErrCorrupt, "a member's data is damaged: replace that member, then disarm the CORRUPT alarm"},
	{rpctypes.ErrPermissionDenied, "give the user a role with readwrite permission for the whole prefix: etcdctl " +
		"role grant-permission ROLE readwrite --prefix=true PREFIX/"},
	{rpctypes.ErrAuthFailed, "correct etcd.username and its password, or set the password with etcdctl user passwd"},
	{rpctypes.ErrUserEmpty, "etcd wants to know the user: set etcd.username and its password, or a client " +
		"certificate whose common name is the user"},
	{rpctypes.ErrUserNotFound, "etcd does not know this user: etcdctl user add, and user grant-role"},
	{rpctypes.ErrNoLeader, "a majority of etcd's members is away"},
}

// Explain adds advice to err, if there is any and err has none yet.
func Explain(err error) error {
	if advice := AdviceFor(err); advice != "" && !strings.Contains(err.Error(), advice) {
		return fmt.Errorf("%w; %s", err, advice)
	}
	return err
}

// AdviceFor returns "" if there is no advice.
func AdviceFor(err error) string {
	for _, a := range advices {
		if Says(err, a.answer) {
			return a.advice
		}
	}
	return ""
}

// Says reports whether err is this answer of etcd. The reason why a watch was refused comes as a
// text alone.
func Says(err, answer error) bool {
	return err != nil && (errors.Is(err, answer) || strings.Contains(err.Error(), rpctypes.ErrorDesc(answer)))
}
