package protocol

import (
	"encoding/json"

	"hooklock/idem"
)

const historyVersion = 1

// historyValue is how an event arrived at one process.
type historyValue struct {
	Version int `json:"v"`
	idem.History
}

// EncodeHistory encodes how an event arrived.
func EncodeHistory(h *idem.History) []byte {
	b, _ := json.Marshal(historyValue{historyVersion, *h}) // strings, numbers and times always encode
	return b
}

// DecodeHistory returns nil for a value that this release cannot read: histories are for operators only.
func DecodeHistory(b []byte) *idem.History {
	var v historyValue
	if checkVersion("arrivals", b, historyVersion) != nil || json.Unmarshal(b, &v) != nil || v.Empty() || v.Counts != nil && len(v.Newest) == 0 {
		return nil
	}
	return &v.History
}
