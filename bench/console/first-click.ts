/**
 * How soon the page reacts to a click, and shows the cluster. Drives Chromium by its own protocol: Playwright
 * makes it send a copy of each stream event, which takes longer than the event itself.
 */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '@tenon/runtime'

const startedWithinMs = 30_000
const lookMs = 5

/** Finds the link to the view Cost once it exists. */
const findLink = `(() => {
  const link = [...document.querySelectorAll('nav a')].find(({ textContent }) => textContent === 'Cost')
  if (link === undefined) return undefined
  const { x, y, width, height } = link.getBoundingClientRect()
  return { x: x + width / 2, y: y + height / 2 }
})()`

/** A tab of Chromium, controlled by its protocol. */
class Tab {
  readonly #socket: WebSocket
  readonly #answers = new Map<number, PromiseWithResolvers<unknown>>()

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => {
      const { id, result, error } = JSON.parse(String(data)) as {
        readonly id?: number
        readonly result?: unknown
        readonly error?: { readonly message: string }
      }
      const answer = this.#answers.get(id ?? -1)
      if (error === undefined) answer?.resolve(result)
      else answer?.reject(new Error(error.message))
    })
  }

  static async open(url: string): Promise<Tab> {
    const socket = new WebSocket(url)
    const opened = Promise.withResolvers<void>()
    socket.addEventListener('open', () => opened.resolve())
    socket.addEventListener('error', () => opened.reject(new Error(`no answer at ${url}`)))
    await opened.promise
    return new Tab(socket)
  }

  async send<T>(method: string, params: object = {}): Promise<T> {
    const id = this.#answers.size
    const answer = Promise.withResolvers<unknown>()
    this.#answers.set(id, answer)
    this.#socket.send(JSON.stringify({ id, method, params }))
    return (await answer.promise) as T
  }

  /** Waits until an expression has a value. */
  async until<T>(expression: string, clock: Clock): Promise<T> {
    for (;;) {
      const { result } = await this.send<{ readonly result: { readonly value?: T } }>('Runtime.evaluate', {
        expression,
        returnByValue: true,
      })
      if (result.value !== undefined && result.value !== null && result.value !== false) return result.value
      await clock.sleep(lookMs)
    }
  }
}

/**
 * Opens the page twice.
 * @param link returns a one-time link.
 * @returns milliseconds until a click on another view takes effect, and until the whole cluster is shown.
 */
export async function firstClick(
  chromiumPath: string,
  link: string,
  clock: Clock,
): Promise<{ readonly answeredMs: number; readonly pictureMs: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-first-click-'))
  const browser = spawn(
    chromiumPath,
    // Chromium's sandbox does not work as root; the page is trusted.
    [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
      '--window-size=1280,900',
      '--remote-debugging-port=0',
      `--user-data-dir=${folder}`,
      'about:blank',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const ended = new Promise((resolve) => browser.once('exit', resolve))
  try {
    const tab = await Tab.open(await tabOf(browser.stderr))
    const began = async (url: string): Promise<number> => {
      const startMs = clock.monotonic()
      await tab.send('Page.navigate', { url })
      return startMs
    }
    // The first page of a browser starts processes. Without the link, only an error message is shown.
    await began(new URL('/', link).href)
    await tab.until(`document.readyState === 'complete' && location.protocol === 'http:'`, clock)
    const startMs = await began(link)
    const at = await tab.until<{ readonly x: number; readonly y: number }>(findLink, clock)
    for (const type of ['mousePressed', 'mouseReleased'])
      await tab.send('Input.dispatchMouseEvent', { type, ...at, button: 'left', clickCount: 1 })
    await tab.until(`document.querySelector('h1')?.textContent === 'Cost'`, clock)
    const answeredMs = clock.monotonic() - startMs
    const againMs = await began(new URL('/', link).href)
    await tab.until(`document.querySelector('[data-test=price]') !== null`, clock)
    return { answeredMs, pictureMs: clock.monotonic() - againMs }
  } finally {
    browser.kill('SIGKILL')
    await ended
    await rm(folder, { recursive: true, force: true })
  }
}

/** The protocol address of the first tab of a started browser. */
async function tabOf(told: NodeJS.ReadableStream): Promise<string> {
  const port = Promise.withResolvers<string>()
  let text = ''
  told.on('data', (chunk) => {
    text += String(chunk)
    const [, found] = /DevTools listening on ws:\/\/[^:]+:(\d+)\//.exec(text) ?? []
    if (found !== undefined) port.resolve(found)
  })
  const signal = AbortSignal.timeout(startedWithinMs)
  signal.addEventListener('abort', () => port.reject(new Error(`Chromium does not start: ${text}`)))
  const answer = await fetch(`http://127.0.0.1:${await port.promise}/json`, { signal })
  const targets = (await answer.json()) as readonly {
    readonly type: string
    readonly webSocketDebuggerUrl: string
  }[]
  const url = targets.find(({ type }) => type === 'page')?.webSocketDebuggerUrl
  if (url === undefined) throw new Error('Chromium has no tab')
  return url
}
