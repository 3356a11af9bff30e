package protocol

import "encoding/json"

const countVersion = 1

// countValue is how many copies of one execution one process has answered without running.
type countValue struct {
	Version int   `json:"v"`
	Count   int64 `json:"count"`
}

// EncodeCount is a count of copies as it is stored.
func EncodeCount(n int64) []byte {
	b, _ := json.Marshal(countValue{countVersion, n}) // numbers always encode
	return b
}

// DecodeCount is 0 for what this release cannot read: a count is for people only.
func DecodeCount(b []byte) int64 {
	var v countValue
	if checkVersion("a count", b, countVersion) != nil || json.Unmarshal(b, &v) != nil {
		return 0
	}
	return max(0, v.Count)
}
