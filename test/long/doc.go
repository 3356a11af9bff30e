// Package long runs Hooklock for hours, with millions of remembered events, through many kills,
// and beside thousands that run again. Its tests skip themselves without a flag:
//
//	go test ./test/long -v -timeout 0 -hours 8
//	go test ./test/long -v -timeout 0 -events 5000000
//	go test ./test/long -v -timeout 0 -kills 200
//	go test ./test/long -v -timeout 0 -again 10000 -rate 500
package long
