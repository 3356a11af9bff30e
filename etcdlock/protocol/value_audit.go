package protocol

import (
	"encoding/json"

	"hooklock/idem"
)

const auditVersion = 1

// auditValue is a stored audit.
type auditValue struct {
	Version int `json:"v"`
	idem.Audit
}

// EncodeAudit encodes an audit.
func EncodeAudit(a *idem.Audit) []byte {
	b, _ := json.Marshal(auditValue{auditVersion, *a}) // strings and times always encode
	return b
}

// DecodeAudit returns nil for a value that this release cannot read: audits are for operators only.
func DecodeAudit(b []byte) *idem.Audit {
	var v auditValue
	if checkVersion("an audit", b, auditVersion) != nil || json.Unmarshal(b, &v) != nil || v.What == "" {
		return nil
	}
	return &v.Audit
}
