// Package rotation keeps the content of files up to date while the program runs: passwords, tokens, keys,
// certificates. A file that is replaced takes no restart.
//
// A file is read each time that its content is used: at each login, handshake or request. Files of this size
// take microseconds. So no rule has to tell from times and inodes whether one has changed, no watch can be
// lost when a folder is swapped (Kubernetes moves a symbolic link, ..data), and a credential that was refused
// is another one at the next try. Only a text that has changed is parsed.
//
//	Get -- reads the files --> equal to the last ones: the value as before
//	                           others, and good: the new value
//	                           unusable: the last good value, and one warning. A token that lets others
//	                           in is refused
//
// Unusable is a file that is missing, empty, too large, no regular file, or against the setting's rule;
// certificates that are cut off in the middle; a certificate and a key that do not belong together, because
// only one of them was written yet.
package rotation
