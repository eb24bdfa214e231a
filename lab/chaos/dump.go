package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/storestream/storestream/internal/storefake"
)

// dump writes what was read of each topic into the run's folder, a record or a watermark a line, for whoever looks into a failure.
func (s *stage) dump() error {
	s.tail.mu.Lock()
	defer s.tail.mu.Unlock()
	var errs []error
	for _, resource := range storefake.Names() {
		errs = append(errs, s.lines("topic-"+resource+".txt", func(w *bufio.Writer) {
			for _, v := range s.tail.versions[resource] {
				fmt.Fprintf(w, "%d/%d id %d updated_at %s value %016x tombstone %v\n", v.partition, v.offset, v.id, instant(v.millis), v.hash, v.gone)
			}
		}), s.lines("watermarks-"+resource+".txt", func(w *bufio.Writer) {
			for _, m := range s.tail.marks[resource] {
				fmt.Fprintf(w, "%+v", m)
				if m.Replay != nil {
					fmt.Fprintf(w, " replay %+v", *m.Replay)
				}
				fmt.Fprintln(w)
			}
		}))
	}
	errs = append(errs, s.lines("requests.txt", func(w *bufio.Writer) {
		for _, a := range s.tail.asks {
			fmt.Fprintf(w, "%+v\n", a)
		}
	}))
	return errors.Join(errs...)
}

func (s *stage) lines(name string, write func(*bufio.Writer)) error {
	f, err := os.Create(filepath.Join(s.dir, name))
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	write(w)
	return errors.Join(w.Flush(), f.Close())
}
