package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// site is the documentation of a repository.
type site struct {
	pages  []*page
	images map[string]bool // files in docs that pages show
	groups []group
}

// group is a part of the sidebar.
type group struct {
	Title string
	Links []link
}

type link struct{ Title, Address string }

// newSite reads all pages. The sidebar has the order of docs/README.md.
func newSite(root string) (*site, error) {
	s := &site{images: map[string]bool{}}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".md" {
			return err
		}
		rel, err := filepath.Rel(filepath.Join(root, "docs"), file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		return s.read(root, "docs/"+rel, addressOf(rel))
	})
	if err != nil {
		return nil, err
	}
	if err := s.read(root, "CHANGELOG.md", "changelog.html"); err != nil {
		return nil, err
	}
	index, err := os.ReadFile(filepath.Join(root, "docs", "README.md"))
	if err != nil {
		return nil, err
	}
	s.groups = groupsOf(string(index))
	return s, nil
}

func (s *site) read(root, source, address string) error {
	p, err := readPage(root, source, address, func(target string) (string, error) {
		return s.resolve(root, source, address, target)
	})
	s.pages = append(s.pages, p)
	return err
}

// resolve returns the target of a link in a page: the page of the site for a Markdown file
// in docs, or the file in the repository.
func (s *site) resolve(root, source, address, target string) (string, error) {
	if strings.Contains(target, ":") || strings.HasPrefix(target, "#") {
		return target, nil
	}
	file, anchor, _ := strings.Cut(target, "#")
	if anchor != "" {
		anchor = "#" + anchor
	}
	file = path.Join(path.Dir(source), file)
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil {
		return "", fmt.Errorf("the link %s leads nowhere", target)
	}
	inDocs, ok := strings.CutPrefix(file, "docs/")
	switch {
	case ok && path.Ext(file) == ".md":
		return relative(address, addressOf(inDocs)) + anchor, nil
	case file == "CHANGELOG.md":
		return relative(address, "changelog.html") + anchor, nil
	case ok && slices.Contains([]string{".png", ".svg"}, path.Ext(file)):
		s.images[inDocs] = true
		return relative(address, inDocs), nil
	}
	return repository + file + anchor, nil
}

var (
	groupHeading = regexp.MustCompile(`^#{2,3} (.+)`)
	groupLink    = regexp.MustCompile(`^\|.*\[([^\]]+)\]\(([^)]+\.md)\)`)
)

// groupsOf reads the sidebar from the tables of the index: a heading begins a group.
func groupsOf(index string) []group {
	var groups []group
	for line := range strings.Lines(index) {
		if m := groupHeading.FindStringSubmatch(line); m != nil {
			groups = append(groups, group{Title: strings.TrimSpace(m[1])})
		}
		if m := groupLink.FindStringSubmatch(line); m != nil && len(groups) > 0 {
			g := &groups[len(groups)-1]
			address := addressOf(m[2])
			if m[2] == "../CHANGELOG.md" {
				address = "changelog.html"
			}
			g.Links = append(g.Links, link{m[1], address})
		}
	}
	return slices.DeleteFunc(groups, func(g group) bool { return len(g.Links) == 0 })
}

var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'">
<meta name="color-scheme" content="light dark">
<title>{{.Title}}{{if ne .Address "index.html"}} · toolreg{{end}}</title>
<link rel="stylesheet" href="{{.Up}}site.css">
<script src="{{.Up}}site.js" data-up="{{.Up}}" defer></script>
</head>
<body>
<header>
<a class="name" href="{{.Up}}index.html">toolreg</a>
<a class="contents" href="#site-contents">Contents</a>
<search id="site-search" hidden><input type="search" placeholder="Search (press /)" aria-label="Search the documentation" autocomplete="off"><ol></ol></search>
</header>
<main>
{{.Body}}</main>
<nav id="site-contents" aria-label="Contents">
{{range .Groups}}<h2>{{.Title}}</h2>
<ul>
{{range .Links}}<li><a href="{{$.Up}}{{.Address}}"{{if eq .Address $.Address}} aria-current="page"{{end}}>{{.Title}}</a>{{if and (eq .Address $.Address) $.Sections}}
<ul>
{{range $.Sections}}<li><a href="#{{.Address}}">{{.Title}}</a></li>
{{end}}</ul>
{{end}}</li>
{{end}}</ul>
{{end}}</nav>
</body>
</html>
`))

// maxSections is the largest number of headings of a page that the sidebar lists.
const maxSections = 15

// html returns a page as HTML.
func (s *site) html(p *page) ([]byte, error) {
	var sections []link
	for _, sec := range p.sections[1:] {
		if sec.level == 2 {
			sections = append(sections, link{sec.title, sec.id})
		}
	}
	if len(sections) < 2 || len(sections) > maxSections {
		sections = nil
	}
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, struct {
		Title, Address, Up string
		Body               template.HTML
		Groups             []group
		Sections           []link
	}{p.title, p.address, relative(p.address, ""), template.HTML(p.body), s.groups, sections}) // the pages are ours
	return b.Bytes(), err
}

// entry is a section in the index for the search.
type entry struct {
	Page    string `json:"page"`
	Title   string `json:"title"`
	Address string `json:"address"`
	Text    string `json:"text"`
}

// index returns a script with all sections. A page that is opened from a folder may load
// scripts, but no other files.
func (s *site) index() ([]byte, error) {
	var entries []entry
	for _, p := range s.pages {
		for i, sec := range p.sections {
			e := entry{p.title, sec.title, p.address + "#" + sec.id, sec.text}
			if i == 0 {
				e.Address = p.address
			}
			entries = append(entries, e)
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(s.place(a), s.place(b)) })
	data, err := json.Marshal(entries)
	return slices.Concat([]byte("toolregSections = "), data, []byte(";\n")), err
}

// place is the position of an entry's page in the sidebar, which decides between results
// that are otherwise equal.
func (s *site) place(e entry) int {
	at := 0
	for _, g := range s.groups {
		for _, l := range g.Links {
			if l.Address == strings.SplitN(e.Address, "#", 2)[0] {
				return at
			}
			at++
		}
	}
	return at
}
