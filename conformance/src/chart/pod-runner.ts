/** Runs the controller for the pods of a Deployment: kwok only pretends to run them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { V1Container, V1EnvVar, V1Pod } from '@kubernetes/client-node'
import { type Clock, sleepOn } from '@tenon/runtime'

const mainFile = fileURLToPath(new URL('../../../packages/cli/src/main.ts', import.meta.url))

export interface PodRunnerOptions {
  readonly folder: string
  /** Of the pods' service account. */
  readonly kubeconfigPath: string
  /** The program and its first arguments; by default the sources of this repository. */
  readonly command?: readonly [string, ...string[]]
  /** Lists the pods. */
  readonly pods: () => Promise<readonly V1Pod[]>
  readonly clock: Clock
  /** Whether a process that ends is started again, as by the kubelet. */
  readonly restarts?: boolean
  /** How often it looks for pods; default 200. */
  readonly pollMs?: number
  /** Take the place of those of the pods. */
  readonly variables?: Readonly<Record<string, string>>
  /** The entries of a Secret in the namespace of the pods, as base64; default: there is none. */
  readonly secret?: (name: string) => Promise<Readonly<Record<string, string>>>
}

/** A pod and the process that runs in place of its container. */
export interface RunningPod {
  readonly name: string
  readonly metricsPort: number
  readonly probePort: number
  readonly env: Readonly<Record<string, string>>
  readonly log: string
  readonly process: ChildProcess
  readonly ended: Promise<unknown>
}

/**
 * Acts as kubelet: starts a process with the arguments and variables of a pod's container once the pod has a
 * node, and stops it when the pod is deleted. Each process gets its own ports, as in a pod's network.
 */
export class PodRunner {
  readonly running: Map<string, RunningPod> = new Map()
  readonly #options: PodRunnerOptions
  readonly #stopping = new AbortController()
  readonly #loop: Promise<void>

  constructor(options: PodRunnerOptions) {
    this.#options = options
    this.#loop = this.#follow()
  }

  /** Throws if a process has ended although its pod still exists. */
  assertRunning(): void {
    for (const { name, process: child, log } of this.running.values()) {
      if (child.exitCode === null && child.signalCode === null) continue
      const how = child.signalCode ?? `exit code ${child.exitCode}`
      throw new Error(
        `the controller of pod ${name} ended (${how}):\n${readFileSync(log, 'utf8').slice(-4000)}`,
      )
    }
  }

  /** Kills all processes without notice. */
  async kill(): Promise<void> {
    for (const { process: child, ended } of this.running.values()) {
      child.kill('SIGKILL')
      await ended
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#loop
    await Promise.all([...this.running.values()].map(end))
    this.running.clear()
  }

  async #follow(): Promise<void> {
    const { pods, clock, pollMs = 200, restarts = false } = this.#options
    while (!this.#stopping.signal.aborted) {
      const present = (await pods()).filter(
        ({ metadata, spec }) =>
          spec?.nodeName !== undefined && spec.nodeName !== '' && metadata?.deletionTimestamp === undefined,
      )
      const names = new Set(present.map(({ metadata }) => metadata?.name ?? ''))
      for (const pod of this.running.values()) {
        const { exitCode, signalCode } = pod.process
        const isOver = restarts && (exitCode !== null || signalCode !== null)
        if (names.has(pod.name) && !isOver) continue
        this.running.delete(pod.name)
        await end(pod)
      }
      for (const pod of present)
        if (!this.running.has(pod.metadata?.name ?? '')) this.#add(await this.#start(pod))
      await sleepOn(clock, pollMs)
    }
  }

  #add(pod: RunningPod): void {
    this.running.set(pod.name, pod)
  }

  async #start(pod: V1Pod): Promise<RunningPod> {
    const { folder, kubeconfigPath, command = [process.execPath, mainFile] } = this.#options
    const name = pod.metadata?.name ?? ''
    const [container] = pod.spec?.containers ?? []
    if (container === undefined) throw new Error(`pod ${name} has no container`)
    const [metricsPort = 0, probePort = 0, debugPort = 0] = await freePorts(3)
    const env = { ...(await containerEnv(pod, container, this.#options)), ...this.#options.variables }
    const log = join(folder, `${name}.log`)
    const output = openSync(log, 'a')
    const [program, ...first] = command
    const child = spawn(program, [...first, ...(container.args ?? [])], {
      stdio: ['ignore', output, output],
      env: {
        ...env,
        PATH: process.env['PATH'],
        HOME: folder,
        KUBECONFIG: kubeconfigPath,
        METRICS_PORT: String(metricsPort),
        HEALTH_PROBE_PORT: String(probePort),
        DEBUG_PORT: String(debugPort),
      },
    })
    closeSync(output)
    const ended = new Promise((resolve) => child.once('exit', resolve))
    return { name, metricsPort, probePort, env, log, process: child, ended }
  }
}

async function end({ process: child, ended }: RunningPod): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await ended
}

/** The container's environment, as the kubelet would compute it. */
async function containerEnv(
  pod: V1Pod,
  container: V1Container,
  { secret }: PodRunnerOptions,
): Promise<Record<string, string>> {
  const values: Record<string, string> = {}
  for (const variable of container.env ?? []) {
    const { name, key } = variable.valueFrom?.secretKeyRef ?? {}
    const entry = name === undefined ? undefined : (await secret?.(name))?.[key ?? '']
    values[variable.name] =
      entry === undefined ? valueOf(variable, pod, container) : Buffer.from(entry, 'base64').toString()
  }
  return values
}

function valueOf({ name, value, valueFrom }: V1EnvVar, pod: V1Pod, container: V1Container): string {
  const source = valueFrom?.fieldRef?.fieldPath ?? valueFrom?.resourceFieldRef?.resource
  if (source === undefined) return value ?? ''
  const { requests, limits } = container.resources ?? {}
  const known: Readonly<Record<string, string>> = {
    'metadata.namespace': pod.metadata?.namespace ?? '',
    'metadata.name': pod.metadata?.name ?? '',
    'requests.cpu': String(cpuMillis(requests?.['cpu'] ?? '0')),
    // Without a limit it is the node's allocatable.
    'limits.memory': String(memoryBytes(limits?.['memory'] ?? '15Gi')),
  }
  const found = known[source]
  if (found === undefined) throw new Error(`variable ${name}: ${source} is not known here`)
  return found
}

function cpuMillis(text: string): number {
  return text.endsWith('m') ? Number.parseInt(text, 10) : Number(text) * 1000
}

function memoryBytes(text: string): number {
  const shift = { Mi: 20, Gi: 30 }[text.slice(-2)]
  return shift === undefined ? Number(text) : Number.parseInt(text, 10) * 2 ** shift
}

/** Loopback ports that were free a moment ago. */
async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve) => {
          server.listen(0, '127.0.0.1', () => {
            const address = server.address()
            resolve(address !== null && typeof address === 'object' ? address.port : 0)
          })
        }),
    ),
  )
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}
