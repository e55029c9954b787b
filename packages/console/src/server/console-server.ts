/** The server of `tenon console` (console.md 3): on loopback, for the user who started it. */
import { type HttpHandler, serveHttp } from '@tenon/runtime'
import { Access } from './access.ts'
import { refusal } from './answer.ts'
import { ConsolePages, type ConsolePagesOptions } from './console-pages.ts'
import { pageFiles } from './page-files.ts'

export interface ConsoleServerOptions extends ConsolePagesOptions {
  /** 0 takes any free port. */
  readonly port: number
  /** Called with a new link when one was used. */
  readonly onLink?: (link: string) => void
}

/** A running server of the page. */
export interface ConsoleServer {
  /** Grants access once. */
  readonly link: string
  close(): Promise<void>
}

const host = '127.0.0.1'

/** @throws Error naming the port if it is in use. */
export async function serveConsole(options: ConsoleServerOptions): Promise<ConsoleServer> {
  const { onLink, port, random } = options
  const ended = new AbortController()
  const files = await pageFiles()
  let url = ''
  const linkWith = (token: string) => `${url}/?token=${token}`
  const access: Access = new Access(random, () => onLink?.(linkWith(access.token)))
  const pages = new ConsolePages(options, files, ended.signal)
  const handler: HttpHandler = async (request, signal = ended.signal) => {
    const admission = access.admit(request)
    if (admission.kind === 'refused') return refusal(admission, request.headers['accept'])
    const answer = await pages.answer(request, AbortSignal.any([signal, ended.signal]))
    if (admission.kind === 'admitted') return answer
    return { ...answer, headers: { ...answer.headers, 'set-cookie': admission.cookie } }
  }
  const server = await serveHttp(handler, {
    host,
    port,
    refuses: (head) => {
      const refused = access.refusalOf(head)
      return refused && refusal(refused, head.headers['accept'])
    },
  })
  url = server.url
  return {
    get link() {
      return linkWith(access.token)
    },
    close: async () => {
      ended.abort(new Error('the console ends'))
      await server.close()
    },
  }
}
