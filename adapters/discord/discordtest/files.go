package discordtest

import (
	"cmp"
	"io"
	"net/http"
	"strings"
)

// File is an attachment. Empty fields are filled from Name.
type File struct {
	ID, Name, Kind string
	Content        string
	URL            string // the fake's own when empty
	Served         string // type that the download has, Kind when empty
	Size           int    // as the message says it; that of the content when 0
	Redirect       string // the download redirects there
}

// PostFile posts text with files.
func (s *Server) PostFile(user, channel, text string, files []File, o ...Delivery) Message {
	s.T.Helper()
	return s.saysWith(user, channel, text, "", files, o)
}

// filed fills attachments in; the caller holds s.mu.
func (s *state) filed(base, channel string, files []File) []File {
	out := make([]File, 0, len(files))
	for _, f := range files {
		if f.ID == "" {
			s.files++
			f.ID = "8000" + strings.Repeat("0", 12) + string(rune('0'+s.files%10))
		}
		f.Kind, f.Size = cmp.Or(f.Kind, "text/plain; charset=utf-8"), cmp.Or(f.Size, len(f.Content))
		f.URL = cmp.Or(f.URL, base+"/attachments/"+channel+"/"+f.ID+"/"+f.Name+"?ex=1&is=1&hm=signature")
		out = append(out, f)
	}
	return out
}

func (s *state) fileWires(m *Message) []any {
	out := []any{}
	for _, f := range m.Files {
		out = append(out, object{"id": f.ID, "filename": f.Name, "content_type": f.Kind, "size": f.Size, "url": f.URL, "proxy_url": f.URL})
	}
	return out
}

// serveFile answers a download. It needs the signature of its address, and no
// token: one that is sent there is a fault of the app.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Header.Get("Authorization") != "" {
		s.violate("a token was sent to the host of files")
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/attachments/"), "/")
	if len(parts) != 3 || r.URL.Query().Get("hm") != "signature" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	for _, m := range s.world.messages[parts[0]] {
		for _, f := range m.Files {
			switch {
			case f.ID != parts[1] || m.Deleted:
			case f.Redirect != "":
				w.Header().Set("Location", f.Redirect)
				w.WriteHeader(http.StatusFound)
				return
			default:
				w.Header().Set("Content-Type", cmp.Or(f.Served, f.Kind))
				_, _ = io.WriteString(w, f.Content)
				return
			}
		}
	}
	w.WriteHeader(http.StatusNotFound)
}
