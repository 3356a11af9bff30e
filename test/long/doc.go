// Package long runs Hooklock for hours, and with millions of remembered events. Its tests skip
// themselves without a flag:
//
//	go test ./test/long -v -timeout 0 -hours 8
//	go test ./test/long -v -timeout 0 -events 5000000
package long
