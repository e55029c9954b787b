/** What is measured, in order. */
import { debugPages } from './debug-pages.ts'
import type { Figure, Stand } from './figure.ts'
import { framed } from './framed.ts'
import { opened } from './opened.ts'
import { answered, streamed } from './served.ts'
import { ServedProcess } from './served-process.ts'
import { viewed } from './viewed.ts'

interface Part {
  /** Printed as progress. */
  readonly about: string
  readonly measure: (stand: Stand) => Promise<readonly Figure[]>
}

export const parts: ReadonlyMap<string, Part> = new Map<string, Part>([
  ['debug', { about: 'ask the pages of the controller', measure: debugPages }],
  ['frames', { about: 'make frames of the viewer', measure: framed }],
  ['view', { about: 'look at the viewer in a pseudo-terminal', measure: viewed }],
  ['server', { about: 'listen to the stream of the page, and ask', measure: served }],
  ['page', { about: 'open the page in Chromium', measure: withPage }],
])

async function served(stand: Stand): Promise<readonly Figure[]> {
  const server = ServedProcess.start(stand)
  try {
    return [...(await streamed(server, stand)), ...(await answered(server, stand))]
  } finally {
    await server.stop()
  }
}

async function withPage(stand: Stand): Promise<readonly Figure[]> {
  const server = ServedProcess.start(stand)
  try {
    // Whoever opens the page first waits for the cluster too, which the previous part measures.
    const stream = await server.get('/api/stream')
    await (stream.body as ReadableStream<Uint8Array>).getReader().read()
    return await opened(server, stand)
  } finally {
    await server.stop()
  }
}
