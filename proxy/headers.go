package proxy

import (
	"strconv"

	"hooklock/idem/guard"
	"hooklock/proxy/wire"
)

// The headers of Hooklock. docs/headers.md lists them.
const (
	headerDecision  = "Hooklock-Decision"
	headerExecution = "Hooklock-Execution"
	headerRecorded  = "Hooklock-Recorded"
	headerReplayed  = "Idempotent-Replayed"
	headerTwinOf    = "Hooklock-Twin-Of" // the event ID of the first event with the body
	headerHold      = "Hooklock-Hold"    // from the upstream alone
	headerStale     = "Hooklock-Stale"   // to the upstream alone
	headerReplay    = "hooklock-replay"  // from rerun --to alone
)

// appendExecution appends the header lines that tell the upstream what it runs.
func appendExecution(dst []byte, x *guard.Execution) []byte {
	lock := x.Lock()
	dst = wire.AppendField(dst, headerExecution, []byte(lock.Execution))
	dst = wire.AppendField(dst, "Hooklock-Workflow", []byte(lock.Scope.Workflow))
	if !lock.Scope.PerEvent { // the token of a lock that no other event takes fences nothing
		dst = append(dst, "Hooklock-Fencing-Token: "...)
		dst = strconv.AppendInt(dst, lock.Token, 10)
		dst = append(dst, "\r\n"...)
	} else if n := lock.OwnSlot(); n >= 0 {
		dst = append(dst, "Hooklock-Slot: "...)
		dst = strconv.AppendInt(dst, int64(n), 10)
		dst = append(dst, "\r\n"...)
	}
	dst = append(dst, "Hooklock-Attempt: "...)
	dst = strconv.AppendInt(dst, int64(lock.Attempt), 10)
	dst = append(dst, "\r\n"...)
	if lock.Stale != nil {
		dst = wire.AppendField(dst, headerStale, []byte(lock.Stale.By))
	}
	dst = wire.AppendField(dst, "Hooklock-Key", []byte(lock.Scope.Key))
	return wire.AppendField(dst, "Hooklock-Callback-Key", []byte(x.CallbackKey))
}
