/**
 * Loaded before a test file (`node --import`): every call to a simulated Exoscale in that process is
 * checked against the OpenAPI document, in both directions. What does not fit ends the process's tests
 * with an error. Without the document nothing is watched.
 */
import { type Exchange, watchExchanges } from '../api/exchange.ts'
import { type ApiDocument, documentMissing, readApiDocument } from './api-document.test-support.ts'

let document: ApiDocument | undefined
const reported = new Set<string>()

/** Each complaint once; a run that repeats it a thousand times is not easier to read. */
function watch(exchange: Exchange): void {
  document ??= readApiDocument()
  // Clients say who they are. Tests also send requests by hand, wrong ones among them.
  const isByClient = exchange.headers['user-agent'] !== undefined
  const complaints = [
    ...(isByClient ? document.requestComplaints(exchange) : []),
    ...document.replyComplaints(exchange),
  ].filter((complaint) => !reported.has(complaint))
  if (complaints.length === 0) return
  for (const complaint of complaints) reported.add(complaint)
  throw new Error(`against the OpenAPI document of Exoscale:\n${complaints.join('\n')}`)
}

if (documentMissing === false) watchExchanges(watch)
