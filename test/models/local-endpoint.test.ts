import { expect, test } from 'vitest'
import { isLocalEndpoint } from '../../src/models/local-endpoint.ts'

test.each([
  ['http://localhost:11434', true],
  ['http://127.0.0.1:1234', true],
  ['http://[::1]:8080', true],
  ['http://192.168.1.7:8000', true],
  ['http://[fd12::7]:8000', true],
  ['http://ollama:11434', true],
  ['http://gpu.local', true],
  ['http://host.docker.internal:11434', true],
  ['https://api.openai.com', false],
  ['https://8.8.8.8', false],
  ['https://localhost.example.com', false],
])('%s is local: %s', (url, isLocal) => {
  expect(isLocalEndpoint(new URL(url))).toBe(isLocal)
})
