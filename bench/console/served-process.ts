/** Runs the shipped `tenon console` as a process, and acts as its browser. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { bundledMain } from '../control-plane/controller-process.ts'
import type { ProbeOrder } from '../control-plane/loop-probe.ts'
import { ask } from './asked.ts'
import { cpuMs, peakMiB, type Stand } from './figure.ts'

const probe = new URL('../control-plane/loop-probe.ts', import.meta.url).href

export class ServedProcess {
  readonly #process: ChildProcess
  readonly #over = new AbortController()
  /** The next link; each can be used once, and the command prints another one after that. */
  #link = Promise.withResolvers<string>()
  #cookie = ''
  #origin = ''

  private constructor(child: ChildProcess) {
    this.#process = child
    for (const input of [child.stdout, child.stderr])
      if (input !== null)
        createInterface({ input }).on('line', (line) => {
          const [link] = /http:\S+/.exec(line) ?? []
          if (link !== undefined) this.#link.resolve(link)
        })
    child.once('exit', () => {
      this.#link.reject(new Error('the console has ended'))
    })
    this.#link.promise.catch(() => undefined)
  }

  static start({ controllerUrl, kubeconfig }: Pick<Stand, 'controllerUrl' | 'kubeconfig'>): ServedProcess {
    const args = ['console', '--kubeconfig', kubeconfig, '--controller', controllerUrl]
    const child = spawn(process.execPath, ['--import', probe, bundledMain(), ...args], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    return new ServedProcess(child)
  }

  /** A link for a browser; can be used once. */
  async takeLink(): Promise<string> {
    const link = await this.#link.promise
    this.#link = Promise.withResolvers()
    this.#link.promise.catch(() => undefined)
    return link
  }

  async get(path: string): Promise<Response> {
    const { signal } = this.#over
    if (this.#cookie === '') {
      const link = await this.takeLink()
      const admitted = await fetch(link, { redirect: 'manual', signal })
      this.#cookie = admitted.headers.get('set-cookie')?.split(';')[0] ?? ''
      this.#origin = new URL(link).origin
    }
    return await fetch(this.#origin + path, { headers: { cookie: this.#cookie }, signal })
  }

  /** Longest blocking since the last call, in milliseconds. */
  async longestHoldMs(): Promise<number> {
    return await ask<number>(this.#process, { kind: 'longestHold' } satisfies ProbeOrder)
  }

  get cpuMs(): number {
    return cpuMs(this.#process.pid)
  }

  get peakMiB(): number {
    return peakMiB(this.#process.pid)
  }

  async stop(): Promise<void> {
    this.#over.abort()
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const ended = once(this.#process, 'exit')
    this.#process.kill()
    await ended
  }
}
