/** The operator in this process, with its decisions recorded. */
import { type KubeObject, nodeClaimCrd, type NodePool, nodePoolCrd, type ResourceType } from '@tenon/api'
import {
  createCacheRegistry,
  createKubeClient,
  type EventInput,
  isKubeError,
  type KubeClient,
  loadKubeConfig,
} from '@tenon/kube'
import { defaultSettings, Operator } from '@tenon/operator'
import { KwokProvider, kwokNodeClassCrd } from '@tenon/provider-kwok'
import { type Clock, type LogFields, type Logger, type LogLevel, type Random, rfc3339 } from '@tenon/runtime'
import { proofKinds } from './objects.ts'

export interface AutoscalerOptions {
  readonly kubeconfigPath: string
  readonly clock: Clock
  readonly random: Random
  /** Whether the scheduler gets the plan; otherwise plans must work whatever it does. */
  readonly plannedPlacement: boolean
  /** Factor on the harness' timeouts, for slow hosts; usually 1. */
  readonly patience: number
}

/** The operator's decisions since {@link Autoscaler.forget}. */
export interface Decisions {
  /** Passes with pending pods, from the first that launched something. */
  readonly passes: number
  /** Number of NodeClaims of each pass that created some. */
  readonly launches: readonly number[]
  /** The first NodeClaim that each pod was planned for, by pod UID. */
  readonly plan: ReadonlyMap<string, string>
  /** Other NodeClaims that a pod was planned for later, by pod UID. */
  readonly changes: ReadonlyMap<string, ReadonlySet<string>>
  /** Why a pod fit nowhere in the first pass that launched something, by pod UID. */
  readonly refusals: ReadonlyMap<string, string>
  /** The same for later passes: the last reason of each pod. */
  readonly laterRefusals: ReadonlyMap<string, string>
}

/** Offers nothing until it is opened, so that the first decision sees all pods and all pools at once. */
class ShutteredProvider extends KwokProvider {
  isOpen = false

  override getInstanceTypes(pool: NodePool): ReturnType<KwokProvider['getInstanceTypes']> {
    return this.isOpen ? super.getInstanceTypes(pool) : Promise.resolve([])
  }
}

/** Tenon's operator with the provider `kwok`. */
export class Autoscaler {
  readonly client: KubeClient
  readonly operator: Operator
  readonly #journal: Journal
  readonly #provider: ShutteredProvider
  readonly #close: () => void

  private constructor(
    client: KubeClient,
    operator: Operator,
    journal: Journal,
    provider: ShutteredProvider,
    close: () => void,
  ) {
    this.client = client
    this.operator = operator
    this.#journal = journal
    this.#provider = provider
    this.#close = close
  }

  /** Installs the CRDs and starts an operator that leads. */
  static async start({
    kubeconfigPath,
    clock,
    random,
    plannedPlacement,
    patience,
  }: AutoscalerOptions): Promise<Autoscaler> {
    const config = loadKubeConfig({ env: {}, kubeconfig: kubeconfigPath, clock })
    const clientOf = (userAgent: string) =>
      createKubeClient({ transport: config.transport, clock, userAgent })
    const client = clientOf('scheduling-proof')
    const administrator = clientOf('administrator')
    await applyCrds(administrator, clock)
    const journal = new Journal(clock)
    const registry = createCacheRegistry({ client, clock, logger: journal, random })
    const provider = new ShutteredProvider({ client, runtime: { clock, random, logger: journal } })
    const operator = new Operator({
      kubernetes: { client, registry, events: journal },
      runtime: { clock, random, logger: journal },
      provider,
      settings: {
        ...defaultSettings,
        // Short, so that several passes run between a launch and its nodes.
        batchIdleMs: 300,
        batchMaxMs: 5000,
        pendingRetryMs: 100,
        // The plan is to be verified, even if the control plane is slow.
        nominationHoldMs: 20_000 * patience,
        featureGates: { ...defaultSettings.featureGates, plannedPlacement },
      },
    })
    await operator.observe(AbortSignal.timeout(20_000 * patience))
    operator.lead()
    return new Autoscaler(administrator, operator, journal, provider, () => config.close())
  }

  get decisions(): Decisions {
    return this.#journal
  }

  /** Logged errors. */
  get complaints(): readonly string[] {
    return this.#journal.complaints
  }

  /** The log of the current round, for failure reports. */
  get log(): readonly string[] {
    return this.#journal.lines
  }

  forget(): void {
    this.#journal.forget()
  }

  /** Whether the provider offers anything; not at first. */
  offer(isOpen: boolean): void {
    this.#provider.isOpen = isOpen
  }

  async stop(): Promise<void> {
    await this.operator.stop()
    this.#close()
  }
}

/** Records log and events of the operator, and derives decisions from them. */
class Journal implements Logger, Decisions {
  passes = 0
  launches: number[] = []
  plan: Map<string, string> = new Map()
  changes: Map<string, Set<string>> = new Map()
  refusals: Map<string, string> = new Map()
  laterRefusals: Map<string, string> = new Map()
  complaints: string[] = []
  lines: string[] = []
  /** Pods that the current pass could not place. */
  #refused = new Map<string, string>()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  forget(): void {
    this.passes = 0
    this.launches = []
    this.plan = new Map()
    this.changes = new Map()
    this.refusals = new Map()
    this.laterRefusals = new Map()
    this.complaints = []
    this.lines = []
  }

  record({ object, reason, message }: EventInput): void {
    const uid = object.metadata.uid ?? ''
    if (reason === 'FailedScheduling') {
      this.#refused.set(uid, message)
      if (this.passes > 1) this.laterRefusals.set(uid, message)
    }
    const claim = /nodeclaim\/([^,\s]+)/.exec(message)?.[1]
    if (reason !== 'Nominated' || claim === undefined) return
    const planned = this.plan.get(uid)
    if (planned === undefined) this.plan.set(uid, claim)
    else if (planned !== claim) this.changes.set(uid, (this.changes.get(uid) ?? new Set()).add(claim))
  }

  debug(message: string, fields?: LogFields): void {
    this.#line('debug', message, fields)
  }

  info(message: string, fields?: LogFields): void {
    this.#line('info', message, fields)
    if (message === 'found provisionable pod(s)') {
      this.#refused = new Map()
      if (this.launches.length > 0) this.passes++
    }
    if (message === 'computed new nodeclaim(s) to fit pod(s)') {
      // A pass reports unschedulable pods before its launches.
      if (this.launches.length === 0) {
        this.refusals = this.#refused
        this.passes = 1
      }
      this.launches.push(Number(fields?.['nodeclaims'] ?? 0))
    }
  }

  warn(message: string, fields?: LogFields): void {
    this.#line('warn', message, fields)
  }

  error(message: string, fields?: LogFields): void {
    this.#line('error', message, fields)
    this.complaints.push(`${message}: ${text(fields)}`)
  }

  with(): Logger {
    return this
  }

  #line(level: LogLevel, message: string, fields?: LogFields): void {
    this.lines.push(`${rfc3339(this.#clock.now())} ${level} ${message} ${text(fields)}`)
  }
}

function text(fields: LogFields | undefined): string {
  return JSON.stringify(fields ?? {}, (_, value: unknown) => (value instanceof Error ? value.message : value))
}

interface Definition extends KubeObject {
  readonly spec: {
    readonly group: string
    readonly scope: string
    readonly names: { readonly kind: string; readonly plural: string }
    readonly versions: readonly { readonly name: string; readonly served: boolean }[]
  }
}

/** Installs the CRDs, and waits until each kind is served; existing ones stay. */
export async function applyCrds(
  client: KubeClient,
  clock: Clock,
  more: readonly object[] = [],
): Promise<void> {
  const type = proofKinds.customResourceDefinition as ResourceType<Definition>
  const all = [nodePoolCrd, nodeClaimCrd, kwokNodeClassCrd, ...more]
  const definitions = all as unknown as readonly Definition[]
  for (const definition of definitions)
    while (!(await isDefined(client, type, definition))) await clock.sleep(100)
  // Only a response proves it: a CRD is Established a moment before its kind is served.
  for (const served of definitions.flatMap(servedTypes)) {
    while (!(await isServed(client, served))) await clock.sleep(100)
  }
}

/** Creates a CRD unless it exists; false while it is terminating, as after another suite. */
async function isDefined(
  client: KubeClient,
  type: ResourceType<Definition>,
  definition: Definition,
): Promise<boolean> {
  try {
    await client.create(type, definition)
    return true
  } catch (error) {
    if (!isKubeError(error, 'alreadyExists')) throw error
    const existing = await client.get(type, { name: definition.metadata.name })
    return existing !== undefined && existing.metadata.deletionTimestamp === undefined
  }
}

function servedTypes({ spec: { group, scope, names, versions } }: Definition): ResourceType[] {
  return versions
    .filter(({ served }) => served)
    .map(({ name }) => ({ ...names, group, version: name, namespaced: scope === 'Namespaced' }))
}

async function isServed(client: KubeClient, type: ResourceType): Promise<boolean> {
  try {
    await client.list(type)
    return true
  } catch (error) {
    if (isKubeError(error) && error.status === 404) return false
    throw error
  }
}
