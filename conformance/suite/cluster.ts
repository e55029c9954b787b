import {
  ApiException,
  KubeConfig,
  type KubernetesObject,
  KubernetesObjectApi,
  PatchStrategy,
} from '@kubernetes/client-node'
import { minorOf } from '@tenon/api'
import { SystemClock } from '@tenon/runtime'
import { type ControlPlane, startControlPlane } from '../src/control-plane.ts'
import { patience } from '../src/patience.ts'
import { readState } from '../src/state.ts'

/** Any object, with the fields that tests read. */
export interface TestObject extends KubernetesObject {
  readonly spec?: {
    readonly nodeName?: string
    readonly providerID?: string
    readonly [field: string]: unknown
  }
  readonly status?: {
    readonly phase?: string
    readonly nodeName?: string
    readonly providerID?: string
    readonly availableReplicas?: number
    readonly capacity?: Readonly<Record<string, string>>
    readonly allocatable?: Readonly<Record<string, string>>
    readonly nodeInfo?: { readonly kubeletVersion: string }
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
  }
}

export interface SharedControlPlane
  extends Pick<ControlPlane, 'kubeconfigPath' | 'binDir' | 'version' | 'stop'> {
  /** Of the API server, such as 36. */
  readonly minor: number
}

const clock = new SystemClock()
const pollMs = 100

/** The API as a test sees it, through the stock client library. */
export class Cluster {
  readonly kubeconfigPath: string
  readonly #objects: KubernetesObjectApi

  constructor(kubeconfigPath: string) {
    this.kubeconfigPath = kubeconfigPath
    const config = new KubeConfig()
    config.loadFromFile(kubeconfigPath)
    this.#objects = KubernetesObjectApi.makeApiClient(config)
  }

  /** Waits for a kind that is not served yet, as its CRD was only just applied. */
  async create(object: TestObject): Promise<TestObject> {
    return await until(`${object.kind} is served`, 30, () =>
      this.#objects.create(object).catch(ignoringUnserved),
    )
  }

  /** Applies a JSON merge patch. */
  patch(object: TestObject): Promise<TestObject> {
    return this.#objects.patch(object, undefined, undefined, undefined, undefined, PatchStrategy.MergePatch)
  }

  /** Deletes in the background; ignores an object that does not exist. */
  async delete(apiVersion: string, kind: string, name: string, namespace?: string): Promise<void> {
    const header = { apiVersion, kind, metadata: { name, ...(namespace && { namespace }) } }
    await ignoringNotFound(
      this.#objects.delete(header, undefined, undefined, undefined, undefined, 'Background'),
    )
  }

  get(apiVersion: string, kind: string, name: string, namespace?: string): Promise<TestObject | undefined> {
    const header = { apiVersion, kind, metadata: { name, ...(namespace && { namespace }) } }
    return ignoringNotFound(this.#objects.read<TestObject>(header))
  }

  async list(apiVersion: string, kind: string, namespace?: string, selector?: string): Promise<TestObject[]> {
    const none = undefined
    const list = await this.#objects.list<TestObject>(
      apiVersion,
      kind,
      namespace,
      none,
      none,
      none,
      none,
      selector,
    )
    return list.items
  }
}

/** Waits until `probe` returns anything but undefined or false; fails with `what` after {@link patience} times `seconds`. */
export async function until<T>(
  what: string,
  seconds: number,
  probe: () => Promise<T | undefined | false>,
): Promise<T> {
  const deadline = clock.monotonic() + seconds * patience * 1000
  for (;;) {
    const value = await probe()
    if (value !== undefined && value !== false) return value
    if (clock.monotonic() > deadline) throw new Error(`not within ${seconds * patience} s: ${what}`)
    await clock.sleep(pollMs)
  }
}

function ignoringUnserved(error: unknown): undefined {
  if (!(error instanceof Error && error.message.startsWith('Failed to fetch resource metadata'))) throw error
}

export function elapsed(): () => number {
  const start = clock.monotonic()
  return () => clock.monotonic() - start
}

/** The status of a condition, such as `True`. */
export function conditionOf(object: TestObject, type: string): string | undefined {
  return object.status?.conditions?.find((condition) => condition.type === type)?.status
}

/**
 * The NodeClaims, once there are some and each is Initialized. A Node without conditions already accepts pods,
 * but is not drained when it is deleted: it counts as a node without an instance.
 * @param pool the NodePool of the claims; default: all claims
 */
export function untilInitialized(cluster: Cluster, seconds: number, pool?: string): Promise<TestObject[]> {
  const selector = pool === undefined ? undefined : `karpenter.sh/nodepool=${pool}`
  return until('every NodeClaim is Initialized', seconds, async () => {
    const claims = await cluster.list('karpenter.sh/v1', 'NodeClaim', undefined, selector)
    const areInitialized = claims.every((claim) => conditionOf(claim, 'Initialized') === 'True')
    return claims.length > 0 && areInitialized && claims
  })
}

/** The control plane that the runner started for the whole suite, or one for this file alone. */
export async function sharedControlPlane(): Promise<SharedControlPlane> {
  const { TENON_CONFORMANCE_DIR: dir, TENON_CONFORMANCE_BIN: binDir } = process.env
  const state = dir === undefined ? undefined : readState(dir)
  if (state === undefined || binDir === undefined) return withMinor(await startControlPlane())
  const { kubeconfigPath, version } = state
  return withMinor({ kubeconfigPath, binDir, version, stop: async () => {} })
}

function withMinor(parts: Omit<SharedControlPlane, 'minor'>): SharedControlPlane {
  const minor = minorOf(parts.version)
  if (minor === undefined) throw new Error(`the API server says that it is ${parts.version}`)
  return { ...parts, minor }
}

/** A Node that kwok manages. */
export function kwokNode(name: string, labels: Record<string, string> = {}): TestObject {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels, annotations: { 'kwok.x-k8s.io/node': 'fake' } },
    spec: {},
    status: {
      capacity: { cpu: '8', memory: '16Gi', pods: '110' },
      allocatable: { cpu: '7500m', memory: '15Gi', pods: '110' },
    },
  }
}

export interface DeploymentParts {
  readonly name: string
  readonly replicas: number
  readonly cpu: string
  readonly memory: string
  readonly nodeSelector?: Record<string, string>
}

export function aDeployment(parts: DeploymentParts): TestObject {
  const { name, replicas, cpu, memory, nodeSelector } = parts
  const requests = { cpu, memory }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          terminationGracePeriodSeconds: 0,
          ...(nodeSelector && { nodeSelector }),
          containers: [{ name: 'main', image: 'registry.k8s.io/pause:3.10', resources: { requests } }],
        },
      },
    },
  }
}

async function ignoringNotFound<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (error instanceof ApiException && error.code === 404) return undefined
    throw error
  }
}
