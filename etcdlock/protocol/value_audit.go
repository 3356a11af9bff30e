package protocol

import (
	"encoding/json"

	"hooklock/idem"
)

const auditVersion = 1

// auditValue is what somebody with a token asked for.
type auditValue struct {
	Version int `json:"v"`
	idem.Audit
}

// EncodeAudit is an audit as it is stored.
func EncodeAudit(a *idem.Audit) []byte {
	b, _ := json.Marshal(auditValue{auditVersion, *a}) // strings and times always encode
	return b
}

// DecodeAudit is nil for what this release cannot read: it is for people only.
func DecodeAudit(b []byte) *idem.Audit {
	var v auditValue
	if checkVersion("an audit", b, auditVersion) != nil || json.Unmarshal(b, &v) != nil || v.What == "" {
		return nil
	}
	return &v.Audit
}
