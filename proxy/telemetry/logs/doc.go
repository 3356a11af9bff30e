// Package logs writes lines to a place that may not take them: a pipe that nobody reads, a disk that is full. Whoever has a line hands it over
// and goes on. What there is no room for is counted, and a line says how many are missing where they would have been.
package logs
