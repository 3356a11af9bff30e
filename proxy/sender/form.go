package sender

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
)

// eachFormPart calls f with each field of a form, in order. The form is application/x-www-form-urlencoded, or multipart/form-data, whose files are
// included. It reports whether all of the body is such a form with at most maxFormParts fields and files.
func eachFormPart(d *Delivery, f func(name, file string, value io.Reader)) bool {
	parts := 0
	if isForm(d) {
		for pair := range bytes.SplitSeq(d.Body, []byte{'&'}) {
			if len(pair) == 0 {
				continue
			}
			if parts++; parts > maxFormParts {
				return false
			}
			n, v, _ := bytes.Cut(pair, []byte{'='})
			name, err := url.QueryUnescape(string(n))
			if err != nil {
				return false
			}
			value, err := url.QueryUnescape(string(v))
			if err != nil {
				return false
			}
			f(name, "", bytes.NewReader([]byte(value)))
		}
		return len(d.Body) > 0
	}
	kind, count := d.header("Content-Type")
	media, parameters, err := mime.ParseMediaType(string(kind))
	if count != 1 || err != nil || media != "multipart/form-data" || parameters["boundary"] == "" {
		return false
	}
	for r := multipart.NewReader(bytes.NewReader(d.Body), parameters["boundary"]); ; {
		part, err := r.NextRawPart()
		if err == io.EOF {
			return true
		}
		if parts++; err != nil || parts > maxFormParts {
			return false
		}
		f(part.FormName(), part.FileName(), part)
	}
}

// maxFormParts bounds the fields and files of a form, which are read before the signature is checked.
const maxFormParts = 10_000

// maxFormField bounds the value that formFields reads, in bytes.
const maxFormField = 4096

// formFields returns the values of the named fields of a form, "" for one that is absent. once is false if one of them is given twice.
func formFields(d *Delivery, names ...string) (values map[string]string, once, form bool) {
	values, once = map[string]string{}, true
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	form = eachFormPart(d, func(name, _ string, value io.Reader) {
		if !wanted[name] {
			return
		}
		_, twice := values[name]
		once = once && !twice
		text, _ := io.ReadAll(io.LimitReader(value, maxFormField))
		values[name] = string(text)
	})
	return values, once, form
}
