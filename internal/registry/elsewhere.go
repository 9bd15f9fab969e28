package registry

// elsewhere returns our names for what other agents call name, in lower case: built-in tools
// and their params.
func elsewhere(name string) []string {
	switch name {
	case "bash", "shell", "terminal", "execute_command", "run_command", "run_terminal_cmd", "local_shell":
		return []string{"run_shell_command"}
	case "bashoutput", "killbash", "killshell":
		return []string{"process"}
	case "read", "view", "cat", "open_file", "read_text_file":
		return []string{"read_file"}
	case "multiedit", "edit_file", "str_replace", "str_replace_editor", "str_replace_based_edit_tool", "search_replace":
		return []string{"edit"}
	case "write", "create_file", "write_to_file":
		return []string{"write_file"}
	case "ls", "list_dir", "list_files":
		return []string{"list_directory"}
	case "ripgrep", "search_files", "codebase_search":
		return []string{"grep"}
	case "file_search", "find_files":
		return []string{"glob"}
	case "webfetch", "fetch_url":
		return []string{"web_fetch"}
	case "replace_all":
		return []string{"expected_replacements"}
	case "run_in_background", "is_background":
		return []string{"background"}
	case "cmd":
		return []string{"command"}
	case "cwd", "workdir", "working_directory":
		return []string{"directory"}
	case "path", "file", "filename", "absolute_path", "target_file", "notebook_path":
		return []string{"file_path"}
	case "file_path", "dir_path", "folder":
		return []string{"path", "directory"}
	case "old_str", "old_text":
		return []string{"old_string"}
	case "new_str", "new_text":
		return []string{"new_string"}
	case "contents", "text", "file_text":
		return []string{"content"}
	case "query", "regex":
		return []string{"pattern"}
	case "file_pattern":
		return []string{"include"}
	case "timeout_ms":
		return []string{"timeout"}
	}
	return nil
}
