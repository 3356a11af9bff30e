package protocol

import "encoding/json"

const countVersion = 1

// countValue is how many duplicates of one execution one process has answered without running.
type countValue struct {
	Version int   `json:"v"`
	Count   int64 `json:"count"`
}

// EncodeCount encodes a count of duplicates.
func EncodeCount(n int64) []byte {
	b, _ := json.Marshal(countValue{countVersion, n}) // numbers always encode
	return b
}

// DecodeCount returns 0 for a value that this release cannot read: counts are for operators only.
func DecodeCount(b []byte) int64 {
	var v countValue
	if checkVersion("a count", b, countVersion) != nil || json.Unmarshal(b, &v) != nil {
		return 0
	}
	return max(0, v.Count)
}
