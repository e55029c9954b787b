/** The operator in this process on a real control plane, with its writes recorded. */
import { karpenterKinds, kinds, type ResourceType } from '@tenon/api'
import {
  createCacheRegistry,
  createEventRecorder,
  createKubeClient,
  type DeleteOptions,
  isKubeError,
  type KubeClient,
  loadKubeConfig,
} from '@tenon/kube'
import { defaultSettings, Operator } from '@tenon/operator'
import type { CloudProvider, ProviderDependencies } from '@tenon/provider'
import { KwokProvider, kwokNodeClassKind } from '@tenon/provider-kwok'
import { type LogFields, type Logger, SeededRandom, SystemClock, type Transport } from '@tenon/runtime'
import { budgetKind } from '../../../test/world/src/takeover/recorded-cluster.test-support.ts'
import { WriteLog } from '../../../test/world/src/takeover/write-log.test-support.ts'
import { patience } from '../patience.ts'
import { applyCrds } from '../scheduling-proof/autoscaler.ts'
import { proofKinds } from '../scheduling-proof/objects.ts'

const pollMs = 100
const clearingMs = 60_000
const gates = { ...defaultSettings.featureGates, staticCapacity: true, nodeRepair: true }
/** The operator's field manager at the API server. */
export const fieldManager = 'tenon-under-test'

/** The cloud of a stand; default: KWOK. */
export interface StandCloud {
  readonly crds: readonly object[]
  /** Additional kinds that tests create. */
  readonly kinds: readonly ResourceType[]
  readonly open: (parts: Omit<ProviderDependencies, 'env'>) => Promise<CloudProvider>
}

/** A cluster as an administrator sees it, and an operator that is started once the cluster is prepared. */
export class Stand {
  readonly clock = new SystemClock()
  /** Its requests are not recorded. */
  readonly admin: KubeClient
  readonly log = new WriteLog()
  readonly #journal = new Journal()
  readonly #kubeconfigPath: string
  readonly #close: () => void
  readonly #cloud: StandCloud | undefined
  #operator: { readonly operator: Operator; readonly close: () => void } | undefined

  private constructor(kubeconfigPath: string, cloud: StandCloud | undefined) {
    this.#kubeconfigPath = kubeconfigPath
    this.#cloud = cloud
    const config = loadKubeConfig({ env: {}, kubeconfig: kubeconfigPath, clock: this.clock })
    this.admin = createKubeClient({
      transport: config.transport,
      clock: this.clock,
      userAgent: 'administrator',
    })
    this.#close = () => config.close()
  }

  /** Installs the CRDs; the cluster is otherwise empty. */
  static async open(kubeconfigPath: string, cloud?: StandCloud): Promise<Stand> {
    const stand = new Stand(kubeconfigPath, cloud)
    await applyCrds(stand.admin, stand.clock, cloud?.crds)
    return stand
  }

  /** Starts an operator that leads at once. */
  async startOperator(): Promise<void> {
    const { clock } = this
    const logger = this.#journal
    const random = new SeededRandom('takeover')
    const config = loadKubeConfig({ env: {}, kubeconfig: this.#kubeconfigPath, clock })
    const client = createKubeClient({
      transport: this.log.listening(config.transport),
      clock,
      userAgent: fieldManager,
    })
    const registry = createCacheRegistry({ client, clock, logger, random })
    const events = createEventRecorder({ client, clock, logger, random, component: 'karpenter' })
    const runtime = { clock, random, logger }
    const kubernetes = { client, registry, events, server: 'https://cluster' }
    const access = { fenced: (inner: Transport) => inner, userAgent: fieldManager }
    const provider =
      (await this.#cloud?.open({ kubernetes, cloud: access, runtime })) ??
      new KwokProvider({ client, runtime })
    const operator = new Operator({
      kubernetes: { client, registry, events },
      runtime,
      provider,
      settings: { ...defaultSettings, featureGates: gates },
    })
    await operator.observe(AbortSignal.timeout(20_000))
    operator.lead()
    this.#operator = { operator, close: () => config.close() }
  }

  async stopOperator(): Promise<void> {
    await this.#operator?.operator.stop()
    this.#operator?.close()
    this.#operator = undefined
  }

  /** Logged errors of the operator. */
  get complaints(): readonly string[] {
    return this.#journal.complaints
  }

  /**
   * Polls until the probe holds.
   * @throws Error naming `what` after {@link patience} times `seconds`.
   */
  async until(what: string, seconds: number, probe: () => Promise<boolean>): Promise<void> {
    const deadline = this.clock.monotonic() + seconds * patience * 1000
    while (!(await probe())) {
      if (this.clock.monotonic() > deadline) {
        throw new Error(
          `not within ${seconds * patience} s: ${what}\n${this.#journal.lines.slice(-30).join('\n')}`,
        )
      }
      await this.clock.sleep(pollMs)
    }
  }

  /** Deletes an object; ignores one that does not exist. */
  async delete(type: ResourceType, name: string, options: DeleteOptions = {}): Promise<void> {
    await this.admin.delete(type, { name }, options).catch(ignoringGone)
  }

  /** Deletes everything that tests create, by force if necessary. */
  async clear(): Promise<void> {
    const removed: readonly ResourceType[] = [
      proofKinds.replicaSet,
      proofKinds.deployment,
      budgetKind,
      karpenterKinds.nodePool,
      karpenterKinds.nodeClaim,
      kinds.node,
      kwokNodeClassKind,
      ...(this.#cloud?.kinds ?? []),
      kinds.pod,
    ]
    await this.until('the cluster is empty', clearingMs / 1000, async () => {
      let left = 0
      for (const type of removed) left += await this.#tearOut(type)
      return left === 0
    })
  }

  async close(): Promise<void> {
    await this.stopOperator()
    this.#close()
  }

  /** @returns the number of objects. */
  async #tearOut(type: ResourceType): Promise<number> {
    const objects = await this.admin.list(type)
    for (const { metadata } of objects) {
      const key = { name: metadata.name, ...(metadata.namespace && { namespace: metadata.namespace }) }
      await this.admin
        .delete(type, key, { propagationPolicy: 'Background', gracePeriodSeconds: 0 })
        .catch(ignoringGone)
      if ((metadata.finalizers ?? []).length > 0)
        await this.admin.patch(type, key, { metadata: { finalizers: null } }).catch(ignoringGone)
    }
    return objects.length
  }
}

function ignoringGone(error: unknown): void {
  if (!isKubeError(error, 'notFound')) throw error
}

/** An object of this client or of the official one. */
interface AnyObject {
  readonly metadata?: Partial<
    Record<
      'name' | 'uid' | 'generation' | 'labels' | 'annotations' | 'finalizers' | 'ownerReferences',
      unknown
    >
  >
  readonly spec?: unknown
}

/** The parts of an object that a takeover must not change. */
export function unchanging({ metadata, spec }: AnyObject): unknown {
  const { name, uid, generation, labels, annotations, finalizers, ownerReferences } = metadata ?? {}
  return { name, uid, generation, labels, annotations, finalizers, ownerReferences, spec }
}

/** Records the operator's log. */
class Journal implements Logger {
  readonly complaints: string[] = []
  readonly lines: string[] = []

  debug(): void {
    // Debug lines are dropped.
  }

  info(message: string, fields?: LogFields): void {
    this.lines.push(`${message} ${textOf(fields)}`)
  }

  warn(message: string, fields?: LogFields): void {
    this.lines.push(`${message} ${textOf(fields)}`)
  }

  error(message: string, fields?: LogFields): void {
    this.lines.push(`${message} ${textOf(fields)}`)
    this.complaints.push(`${message} ${textOf(fields)}`)
  }

  with(): Logger {
    return this
  }
}

const textOf = (fields: LogFields = {}) =>
  JSON.stringify(fields, (_, value: unknown) => (value instanceof Error ? value.message : value))
