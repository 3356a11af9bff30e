package sender

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"strings"
)

// eachFormPart calls f with each field of a form, in order. The form is
// application/x-www-form-urlencoded, or multipart/form-data, whose files are included. It reports
// whether all of the body is such a form with at most maxFormParts fields and files.
func eachFormPart(d *Delivery, f func(name, file string, value io.Reader)) bool {
	if isForm(d) {
		return len(d.Body) > 0 && eachFormPair(d.Body, f)
	}
	kind, count := d.findHeader("Content-Type")
	media, parameters, err := mime.ParseMediaType(string(kind))
	boundary := parameters["boundary"]
	return count == 1 && err == nil && media == "multipart/form-data" && boundary != "" &&
		eachMultipart(d.Body, boundary, f)
}

// eachFormPair is eachFormPart of application/x-www-form-urlencoded.
func eachFormPair(body []byte, f func(name, file string, value io.Reader)) bool {
	pairs := 0
	for pair := range bytes.SplitSeq(body, []byte{'&'}) {
		if len(pair) == 0 {
			continue
		}
		n, v, _ := bytes.Cut(pair, []byte{'='})
		name, badName := url.QueryUnescape(string(n))
		value, badValue := url.QueryUnescape(string(v))
		if pairs++; pairs > maxFormParts || badName != nil || badValue != nil {
			return false
		}
		f(name, "", strings.NewReader(value))
	}
	return true
}

// eachMultipart is eachFormPart of multipart/form-data.
func eachMultipart(body []byte, boundary string, f func(name, file string, value io.Reader)) bool {
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	for parts := 0; ; parts++ {
		part, err := r.NextRawPart()
		if err == io.EOF {
			return true
		}
		if err != nil || parts == maxFormParts {
			return false
		}
		f(part.FormName(), part.FileName(), part)
	}
}

// maxFormParts bounds the fields and files of a form, which are read before the signature is
// checked.
const maxFormParts = 10_000

// maxFormField bounds the value that formFields reads, in bytes.
const maxFormField = 4096

// formFields returns the values of the named fields of a form, "" for one that is absent. once is
// false if one of them is given twice.
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
