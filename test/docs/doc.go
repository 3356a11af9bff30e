// Package docs compares the documents with the program: configurations load, links have targets,
// every decision, code, header, metric and log event of the code is in a table. It also bounds the
// number of words, and refuses words that only this project would understand.
package docs
