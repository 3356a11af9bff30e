package proxy

import (
	"strconv"

	"hooklock/idem"
)

// The headers that Hooklock speaks. docs/headers.md lists them.
const (
	headerDecision  = "Hooklock-Decision"
	headerExecution = "Hooklock-Execution"
	headerRecorded  = "Hooklock-Recorded"
	headerReplayed  = "Idempotent-Replayed"
)

// appendExecution appends the header lines that tell the upstream what it runs.
func appendExecution(dst []byte, x *idem.Execution) []byte {
	lock := x.Lock()
	dst = appendLine(dst, headerExecution, string(lock.Execution))
	dst = appendLine(dst, "Hooklock-Workflow", lock.Scope.Workflow)
	if !lock.Scope.PerEvent { // the token of a lock that no other event asks for fences nothing
		dst = append(dst, "Hooklock-Fencing-Token: "...)
		dst = strconv.AppendInt(dst, lock.Token, 10)
		dst = append(dst, "\r\n"...)
	}
	dst = append(dst, "Hooklock-Attempt: "...)
	dst = strconv.AppendInt(dst, int64(lock.Attempt), 10)
	dst = append(dst, "\r\n"...)
	dst = appendLine(dst, "Hooklock-Key", string(lock.Scope.Key))
	return appendLine(dst, "Hooklock-Callback-Key", x.CallbackKey)
}

func appendLine(dst []byte, name, value string) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}
