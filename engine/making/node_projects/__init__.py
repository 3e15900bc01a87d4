"""Node.js projects of repositories: built where they have to be, packed as their authors publish them, with what they depend on."""
