import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SystemClock } from '@tenon/runtime'
import type { Binaries } from './binaries.ts'
import { boot, type Features, folderEntries } from './boot.ts'
import { ProcessGroup } from './processes.ts'
import { type ControlPlaneState, stateFile } from './state.ts'

/** Messages of the starting process to the supervisor. */
export type SupervisorRequest =
  | {
      readonly kind: 'start'
      readonly folder: string
      readonly binaries: Binaries
      /** Keep everything in the folder when stopping. */
      readonly keep: boolean
      /** Remove the folder itself when stopping, not only its content. */
      readonly removeFolder: boolean
      readonly features?: Features
      readonly port?: number
    }
  /** From now on the control plane outlives the process that started it. */
  | { readonly kind: 'release' }
  | { readonly kind: 'stop' }

/** Replies of the supervisor. */
export type SupervisorReply =
  | { readonly kind: 'ready'; readonly state: ControlPlaneState }
  | { readonly kind: 'released' }
  | { readonly kind: 'failed'; readonly message: string }

/** How long programs may take to exit by themselves if their data is kept. */
const graceMs = 1_000

/**
 * Starts a control plane and outlives its parent just long enough to clean up: the IPC channel closes when the
 * parent ends, however it ends.
 */
class Supervisor {
  readonly #clock = new SystemClock()
  #request: Extract<SupervisorRequest, { kind: 'start' }> | undefined
  #processes: ProcessGroup | undefined
  #stopping = false
  #released = false

  handle(message: SupervisorRequest): void {
    switch (message.kind) {
      case 'start':
        void this.#start(message)
        break
      case 'release':
        this.#released = true
        reply({ kind: 'released' })
        break
      case 'stop':
        void this.stop(0)
        break
    }
  }

  disconnected(): void {
    if (!this.#released) void this.stop(0)
  }

  async stop(exitCode: number): Promise<void> {
    if (this.#stopping) return
    this.#stopping = true
    const keep = this.#request?.keep ?? false
    await this.#processes?.stop(keep ? graceMs : 0)
    if (!keep) this.#removeFiles()
    process.exit(exitCode)
  }

  async #start(request: Extract<SupervisorRequest, { kind: 'start' }>): Promise<void> {
    this.#request = request
    const { folder, binaries, features, port } = request
    const processes = new ProcessGroup(join(folder, 'logs'), this.#clock)
    this.#processes = processes
    try {
      const { endpoint, kubeconfigPath, version } = await boot({
        folder,
        binaries,
        processes,
        clock: this.#clock,
        environment: process.env,
        ...(features && { features }),
        ...(port !== undefined && { port }),
      })
      const state: ControlPlaneState = { pid: process.pid, folder, endpoint, kubeconfigPath, version }
      writeFileSync(stateFile(folder), `${JSON.stringify(state)}\n`)
      reply({ kind: 'ready', state })
      await processes.failure
    } catch (error) {
      if (this.#stopping) return
      const message = error instanceof Error ? error.message : String(error)
      reply({ kind: 'failed', message })
      // Written to the supervisor's log, as nobody may be listening any more.
      process.stderr.write(`${message}\n`)
      await this.stop(1)
    }
  }

  #removeFiles(): void {
    const request = this.#request
    if (request === undefined) return
    for (const entry of folderEntries) rmSync(join(request.folder, entry), { recursive: true, force: true })
    rmSync(stateFile(request.folder), { force: true })
    if (request.removeFolder) rmSync(request.folder, { recursive: true, force: true })
  }
}

function reply(message: SupervisorReply): void {
  if (process.connected) process.send?.(message)
}

if (process.send === undefined) throw new Error('the supervisor is started by control-plane.ts')
const supervisor = new Supervisor()
process.on('message', (message) => supervisor.handle(message as SupervisorRequest))
process.on('disconnect', () => supervisor.disconnected())
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => void supervisor.stop(0))
