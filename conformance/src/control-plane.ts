import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve as absolute } from 'node:path'
import { SystemClock } from '@tenon/runtime'
import { type Binaries, ensureBinaries } from './binaries.ts'
import type { Features } from './boot.ts'
import { controlPlaneComponents, type Environment } from './components.ts'
import { type ControlPlaneState, isAlive, readState, supervisorScript } from './state.ts'
import type { SupervisorReply, SupervisorRequest } from './supervisor.ts'

export interface StartOptions {
  /** Where everything is written; default: a temporary folder that is removed when the control plane stops. */
  readonly dir?: string
  /** Keep data, credentials and logs when stopping, so that a start in the same `dir` continues from there. */
  readonly keep?: boolean
  /** Outlive this process; stop it with {@link stopControlPlane} or `stop()`. */
  readonly background?: boolean
  /** Non-default features of Kubernetes. */
  readonly features?: Features
  /** Port of the API server; default: any free one. */
  readonly port?: number
  /** Environment variables that say where binaries are or may be built; default: this process's. */
  readonly environment?: Environment
  /** Called with lines about binaries being built; default: they are printed on stderr. */
  readonly progress?: (line: string) => void
}

/** A real Kubernetes control plane on loopback, with kwok in place of kubelets. */
export interface ControlPlane {
  /** A kubeconfig of a member of system:masters. */
  readonly kubeconfigPath: string
  readonly endpoint: string
  /** The folder with kubectl and Kubernetes' own programs. */
  readonly binDir: string
  readonly folder: string
  /** The API server's version, such as `v1.36.3`. */
  readonly version: string
  /** The process that supervises all others. */
  readonly pid: number
  /** Stops every program and removes what is not kept. May be called again. */
  stop(): Promise<void>
}

/** The control plane did not start; the message says which program failed, with its last output. */
export class StartFailedError extends Error {
  readonly code = 'START_FAILED'
}

/**
 * Starts etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, builds what is missing, and
 * waits until pods can be created. Unless `background`, all of it ends with this process.
 * @throws GoMissingError, BuildFailedError, StartFailedError
 */
export async function startControlPlane(options: StartOptions = {}): Promise<ControlPlane> {
  const running = options.dir === undefined ? undefined : readState(absolute(options.dir))
  if (running !== undefined) {
    throw new StartFailedError(`a control plane is already running in ${running.folder}; stop it first`)
  }
  const binaries = (await ensureBinaries(controlPlaneComponents, {
    environment: options.environment ?? process.env,
    clock: new SystemClock(),
    progress: options.progress ?? ((line) => process.stderr.write(`${line}\n`)),
  })) as Binaries
  const folder = prepareFolder(options.dir)
  const supervisor = spawnSupervisor(folder)
  tell(supervisor, {
    kind: 'start',
    folder,
    binaries,
    keep: options.keep ?? false,
    removeFolder: options.dir === undefined,
    ...(options.features && { features: options.features }),
    ...(options.port !== undefined && { port: options.port }),
  })
  const state = await ready(supervisor)
  if (options.background === true) await release(supervisor)
  supervisor.unref()
  supervisor.channel?.unref()
  return {
    ...state,
    binDir: dirname(binaries['kube-apiserver']),
    stop: () => stopSupervisor(supervisor, state),
  }
}

/** Stops the control plane that was started in the background in `dir`; returns false if none is running there. */
export async function stopControlPlane(dir: string): Promise<boolean> {
  const state = readState(absolute(dir))
  if (state === undefined) return false
  process.kill(state.pid, 'SIGTERM')
  const clock = new SystemClock()
  while (isAlive(state.pid)) await clock.sleep(20)
  return true
}

function prepareFolder(dir: string | undefined): string {
  if (dir === undefined) return mkdtempSync(join(tmpdir(), 'tenon-control-plane-'))
  mkdirSync(dir, { recursive: true })
  return absolute(dir)
}

function spawnSupervisor(folder: string): ChildProcess {
  const logs = join(folder, 'logs')
  mkdirSync(logs, { recursive: true, mode: 0o700 })
  // Not this process's own streams: whoever reads those to their end would wait for the control plane.
  const log = openSync(join(logs, 'supervisor.log'), 'a')
  // In its own session, so that Ctrl-C in a terminal reaches it only through its parent.
  const options: SpawnOptions = { stdio: ['ignore', log, log, 'ipc'], detached: true }
  const supervisor = spawn(process.execPath, [supervisorScript], options)
  closeSync(log)
  return supervisor
}

function tell(supervisor: ChildProcess, request: SupervisorRequest): void {
  supervisor.send(request)
}

function ready(supervisor: ChildProcess): Promise<ControlPlaneState> {
  return new Promise((resolve, reject) => {
    supervisor.once('error', reject)
    supervisor.once('exit', () => reject(new StartFailedError('the supervisor ended before it was ready')))
    supervisor.once('message', (message) => {
      const reply = message as SupervisorReply
      if (reply.kind === 'ready') resolve(reply.state)
      else reject(new StartFailedError(reply.kind === 'failed' ? reply.message : `unexpected ${reply.kind}`))
    })
  })
}

async function release(supervisor: ChildProcess): Promise<void> {
  const released = new Promise((resolve) => supervisor.once('message', resolve))
  tell(supervisor, { kind: 'release' })
  await released
  supervisor.disconnect()
}

async function stopSupervisor(supervisor: ChildProcess, state: ControlPlaneState): Promise<void> {
  if (supervisor.exitCode !== null || supervisor.signalCode !== null) return
  const ended = new Promise((resolve) => supervisor.once('exit', resolve))
  supervisor.ref()
  if (supervisor.connected) tell(supervisor, { kind: 'stop' })
  else process.kill(state.pid, 'SIGTERM')
  await ended
}
