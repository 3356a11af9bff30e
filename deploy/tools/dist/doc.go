// Package dist has what a release is made of: the program for each system, manual pages and
// completions, the licences of what is linked in, the bill of materials, archives and checksums.
// The same sources, version, epoch and Go release give the same bytes.
//
// It uses the standard library alone, so that a release needs no more modules than the program.
package dist
