// Package remote asks models that are served elsewhere.
//
//	POST BASE/chat/completions  messages -> text
//
// Its one idea: a server is a helper that may be away and may say anything.
// What concerns the server (ErrUnavailable) is kept apart from what concerns one
// request, so that a caller knows whether the next request is worth making.
//
// Format: the chat completions of OpenAI, as llama.cpp, vLLM, Ollama and
// others also serve them; not streamed, one choice, as cold as
// can be.
//
// SECURITY: requests go to the configured address and to no other: redirects
// are not followed, a proxy of the environment is used for https alone, and no
// address or key of the environment is. Errors name statuses and the
// server's host, never what was sent or said.
//
// It keeps nothing, logs nothing and judges no text: whoever uses an answer
// treats it as coming from a stranger.
package remote
