package naming

import (
	"bytes"
	"encoding/base64"
)

// bodySource reads a member of a JSON body.
type bodySource struct {
	set  *bodySet
	slot int
}

func (b bodySource) readValue(m *Message) ([]byte, result) {
	s := &m.scratch
	values := &s.body
	if values.set != b.set {
		values.set = b.set
		text := m.bodyText()
		if values.json = values.scan.scanText(text, b.set); !values.json {
			claims := claimsOf(text)
			values.json = claims != nil && values.scan.scanText(claims, b.set)
		}
	}
	if !values.json {
		return nil, missing
	}
	return s.decodeMember(values.scan.got[b.slot])
}

// claimsOf returns the claims of a JSON Web Token, if the body is one and nothing else (RFC 8935
// section 2); nil otherwise. Their signature is not looked at here.
func claimsOf(body []byte) []byte {
	if len(body) > maxInner {
		return nil
	}
	parts := bytes.SplitN(bytes.TrimSpace(body), []byte{'.'}, 4)
	if len(parts) != 3 {
		return nil
	}
	claims, err := base64.RawURLEncoding.AppendDecode(nil, parts[1])
	if err != nil {
		return nil
	}
	return claims
}

// bodyText returns the body without the byte order mark that it may begin with: RFC 8259, section
// 8.1 lets a reader of JSON ignore it, and the URL standard decodes a form without it.
func (m *Message) bodyText() []byte { return bytes.TrimPrefix(m.Body, byteOrderMark) }

var byteOrderMark = []byte("\ufeff")

// decodeMember decodes what a scan has found.
func (s *scratch) decodeMember(got jsonMember) ([]byte, result) {
	raw := got.text[got.start:got.end]
	if got.result != found || !got.escaped {
		return raw, got.result
	}
	if s.isTooLong(len(raw), 6) {
		return nil, tooLong
	}
	from := len(s.values)
	decoded, ok := appendJSONString(s.values, raw)
	if !ok {
		return nil, missing
	}
	return s.commitValue(decoded, from), found
}

// bodyValues is what one body has at the paths in a set. One scan finds all of them.
type bodyValues struct {
	set  *bodySet // that was scanned for; nil: none yet
	json bool     // the body is JSON
	scan jsonScan
}

// bodySet is every path into the body that the templates of one route read, or that it leaves out,
// as a tree of steps.
type bodySet struct {
	root  pathNode
	nodes int // below root
	slots int // paths
}

// pathNode is one step of a path, and all the steps that follow it.
type pathNode struct {
	pathStep
	id       int
	slot     int // of the path that ends here; -1 for none
	children []*pathNode
}

// pathStep is a member of an object or an element of an array.
type pathStep struct {
	name    string
	index   int
	isIndex bool
}

// addPath puts a path into the set and returns its slot. Equal paths share one.
func (s *bodySet) addPath(path []pathStep) (slot int) {
	s.root.slot = -1
	n := &s.root
	for _, step := range path {
		n = s.childNode(n, step)
	}
	if n.slot < 0 {
		n.slot = s.slots
		s.slots++
	}
	return n.slot
}

func (s *bodySet) childNode(n *pathNode, step pathStep) *pathNode {
	for _, c := range n.children {
		if c.pathStep == step {
			return c
		}
	}
	c := &pathNode{pathStep: step, id: s.nodes, slot: -1}
	s.nodes++
	n.children = append(n.children, c)
	return c
}

// elementNode returns the node of an array's element i, nil if it is not wanted.
func (n *pathNode) elementNode(i int) *pathNode {
	if n == nil {
		return nil
	}
	for _, c := range n.children {
		if c.isIndex && c.index == i {
			return c
		}
	}
	return nil
}
