package slacktest

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"strings"
)

// File is a file that people post. Empty fields are filled from Name.
type File struct {
	ID, Name, Mimetype string
	Content            string
	User               string // who made it; who posts it when empty
	URL                string // url_private, the fake's own when empty
	Mode               string // hosted when empty; external: it lies elsewhere
	Redirect           string // the download redirects there
	Served             string // type that the download has, that of the file when empty
	Size               int    // as files.info says it; that of the content when 0
	Broken             bool   // the download answers with status 500
	Deleted            bool
}

var fileMethods = map[string]method{
	"files.info": {kind: "bot", get: true, scopes: []string{"files:read"}, run: fileInfo},
}

// PostFile posts text with files in the channel, in a thread where parent is
// not "". A file with the id of one that is there is that one.
func (s *Server) PostFile(user, channel, parent, text string, files []File, o ...Delivery) Message {
	s.T.Helper()
	s.mu.Lock()
	var ids []string
	for _, f := range files {
		ids = append(ids, s.addFile(user, f))
	}
	s.mu.Unlock()
	return s.saysWith(user, channel, parent, text, "file_share", false, ids, o)
}

// addFile puts a file in; the caller holds s.mu.
func (s *Server) addFile(user string, f File) string {
	if s.world.files[f.ID] != nil {
		return f.ID
	}
	if f.ID == "" {
		f.ID = s.id("F")
	}
	if f.User == "" {
		f.User = user
	}
	if f.Mode == "" {
		f.Mode = "hosted"
	}
	if f.Mimetype == "" {
		f.Mimetype = "text/plain"
	}
	if f.Size == 0 {
		f.Size = len(f.Content)
	}
	if f.URL == "" {
		f.URL = s.Base + "/files-pri/" + s.world.Team.ID + "-" + f.ID + "/" + strings.ToLower(f.Name)
	}
	s.world.files[f.ID] = &f
	return f.ID
}

// DeleteFile deletes the file wherever it was posted.
func (s *Server) DeleteFile(id string) {
	s.T.Helper()
	s.change(func() {
		f := s.world.files[id]
		if f == nil {
			s.Failf("no file %s in this world", id)
		}
		f.Deleted = true
		s.event("file_deleted", map[string]any{"file_id": id}, nil)
	})
}

// fileWire is a file as messages and files.info carry it.
func (s *state) fileWire(id string) map[string]any {
	f := s.files[id]
	if f == nil || f.Deleted {
		return map[string]any{"id": id, "mode": "tombstone"}
	}
	return map[string]any{
		"id": id, "name": f.Name, "title": f.Name, "mimetype": f.Mimetype, "filetype": f.Name[strings.LastIndexByte(f.Name, '.')+1:],
		"user": f.User, "size": f.Size, "mode": f.Mode, "is_external": f.Mode == "external", "external_type": "",
		"url_private": f.URL, "url_private_download": f.URL, "created": 1700000000, "timestamp": 1700000000,
	}
}

// posted lists where the bot can see the file.
func (s *Server) posted(id string) (channels, groups, ims []string) {
	channels, groups, ims = []string{}, []string{}, []string{}
	for _, c := range s.world.channels {
		if !c.has(s.world.App.BotUser) || !slices.ContainsFunc(s.world.messages[c.ID], func(m *Message) bool { return !m.Deleted && slices.Contains(m.Files, id) }) {
			continue
		}
		switch c.Kind {
		case Public:
			channels = append(channels, c.ID)
		case IM:
			ims = append(ims, c.ID)
		default:
			groups = append(groups, c.ID)
		}
	}
	return channels, groups, ims
}

func fileInfo(s *Server, c *call) reply {
	f := s.world.files[c.args["file"]]
	if f == nil {
		return failure("file_not_found")
	}
	if f.Deleted {
		return failure("file_deleted")
	}
	channels, groups, ims := s.posted(f.ID)
	if len(channels)+len(groups)+len(ims) == 0 {
		return failure("file_not_found") // the bot sees what was posted where it is
	}
	o := s.world.fileWire(f.ID)
	o["channels"], o["groups"], o["ims"] = channels, groups, ims
	return reply{"ok": true, "file": o}
}

// signIn is what Slack shows in the place of a file to whoever has no right to
// it, with status 200.
const signIn = "<!DOCTYPE html><html><head><title>Slack</title></head><body>Sign in to your workspace</body></html>"

// serveFile answers a download. Without a token that may read files it leads
// to the page where people sign in.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	_, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/files-pri/"), "-")
	id, _, _ := strings.Cut(rest, "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	tok := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.record(&Request{At: s.clock.Now(), Route: "file", Verb: r.Method, Token: tok, Header: r.Header.Clone(), Args: map[string]string{"file": id}, Status: 200})
	if r.URL.RawQuery != "" {
		s.violate("a file was asked for with a query, which may hold a token")
	}
	t, f := s.tokens[tok], s.world.files[id]
	switch {
	case t == nil || t.dead != "" || !slices.Contains(t.scopes, "files:read"):
		w.Header().Set("Location", s.Base+"/signin")
		w.WriteHeader(http.StatusFound)
	case f == nil || f.Deleted:
		w.WriteHeader(http.StatusNotFound)
	case f.Broken:
		w.WriteHeader(http.StatusInternalServerError)
	case f.Redirect != "":
		w.Header().Set("Location", f.Redirect)
		w.WriteHeader(http.StatusFound)
	default:
		w.Header().Set("Content-Type", cmp.Or(f.Served, f.Mimetype))
		_, _ = io.WriteString(w, f.Content)
	}
}

func (s *Server) serveSignIn(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, signIn)
}

// SignInURL is the page that Slack shows in the place of a file.
func (s *Server) SignInURL() string { return s.Base + "/signin" }

// ChangeFile changes a file without any event.
func (s *Server) ChangeFile(id string, f func(*File)) {
	s.T.Helper()
	s.change(func() {
		file := s.world.files[id]
		if file == nil {
			s.Failf("no file %s in this world", id)
		}
		f(file)
	})
}
