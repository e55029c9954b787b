/** Drains a node as `kubectl drain --ignore-daemonsets --delete-emptydir-data` does. */
import { kinds, type Pod } from '@tenon/api'
import { isKubeError, type KubeClient, type KubeError } from '@tenon/kube'
import { isDaemonPod, isMirrorPod } from '@tenon/operator/objects'
import { CliError } from '../../errors.ts'
import type { ClusterConnection } from '../../kubectl/connection.ts'

export interface DrainOptions {
  /** Time limit in milliseconds. */
  readonly limitMs: number
  readonly signal: AbortSignal
}

type Connection = Pick<ClusterConnection, 'client' | 'clock'>

/** Pause before an eviction that a PodDisruptionBudget has rejected is tried again. */
const againMs = 5000
const lookMs = 500

/** Pods that are still on the node. */
interface Left {
  /** By pod: why it cannot be evicted now. */
  readonly held: ReadonlyMap<string, string>
  readonly ending: readonly string[]
}

export async function setUnschedulable(
  { client }: Pick<Connection, 'client'>,
  name: string,
  unschedulable: boolean,
): Promise<void> {
  await client.patch(kinds.node, { name }, { spec: { unschedulable: unschedulable ? true : null } })
}

/**
 * Cordons a node, evicts its pods, and waits until they are gone.
 * @throws CliError naming the remaining pods. If a pod has no controller that would recreate it, no pod is
 * evicted.
 */
export async function drained(
  connection: Connection,
  node: string,
  { limitMs, signal }: DrainOptions,
): Promise<string> {
  const { clock } = connection
  const endMs = clock.monotonic() + limitMs
  await setUnschedulable(connection, node, true)
  const pods = (await podsOn(connection, node)).filter(
    (pod) => !isMirrorPod(pod) && (hasEnded(pod) || !isDaemonPod(pod)),
  )
  const alone = pods.filter((pod) => !hasEnded(pod) && !hasController(pod))
  if (alone.length > 0)
    throw new CliError(
      `node/${node} cordoned, and nothing evicted: no controller would put back ${alone.map(nameOf).join(', ')}`,
    )
  let held: ReadonlyMap<string, string> = new Map()
  let waiting: readonly Pod[] = pods
  let askedMs = Number.NEGATIVE_INFINITY
  for (;;) {
    if (clock.monotonic() - askedMs >= againMs || clock.monotonic() >= endMs) {
      askedMs = clock.monotonic()
      held = await evicted(connection, node, waiting)
      waiting = waiting.filter((pod) => held.has(nameOf(pod)))
    }
    const ending = await stillThere(connection, node, pods)
    if (ending.length === 0) return `node/${node} drained`
    if (clock.monotonic() >= endMs)
      throw new CliError(leftText(node, limitMs, { held, ending: ending.filter((name) => !held.has(name)) }))
    await clock.sleep(Math.max(1, Math.min(lookMs, endMs - clock.monotonic())), signal)
  }
}

export async function podsOn(
  { client }: { readonly client: Pick<KubeClient, 'list'> },
  node: string,
): Promise<readonly Pod[]> {
  return await client.list(kinds.pod, { fieldSelector: `spec.nodeName=${node}` })
}

/** Names of the pods that still exist. A pod of the same name with another UID is a new pod. */
async function stillThere(
  connection: Connection,
  node: string,
  pods: readonly Pod[],
): Promise<readonly string[]> {
  const uids = new Set(pods.map(({ metadata }) => metadata.uid))
  return (await podsOn(connection, node)).filter(({ metadata }) => uids.has(metadata.uid)).map(nameOf)
}

/**
 * Evicts each pod.
 * @returns by `namespace/name`: why some cannot be evicted now.
 * @throws CliError if an eviction is refused for good.
 */
export async function evicted(
  { client }: { readonly client: Pick<KubeClient, 'evict'> },
  node: string,
  pods: readonly Pod[],
): Promise<ReadonlyMap<string, string>> {
  const held = new Map<string, string>()
  for (const pod of pods) {
    const { name, namespace = 'default', uid = '' } = pod.metadata
    try {
      await client.evict({ name, namespace }, uid)
    } catch (error) {
      if (isKubeError(error, 'notFound')) continue
      if (!isKubeError(error)) throw error
      if (!['conflict', 'tooManyRequests'].includes(error.kind))
        throw new CliError(
          `node/${node} cordoned; pod ${nameOf(pod)} is not evicted: ${error.serverMessage ?? error.message}`,
          { cause: error },
        )
      held.set(nameOf(pod), refusalText(error))
    }
  }
  return held
}

function refusalText({ causes = [], message, serverMessage = message }: KubeError): string {
  return causes.length === 0 ? serverMessage : causes.join(' ')
}

function leftText(node: string, limitMs: number, { held, ending }: Left): string {
  const lines = [
    ...Array.from(held, ([name, why]) => `pod ${name} may not be evicted now: ${why}`),
    ...ending.map((name) => `pod ${name} has not ended yet`),
  ]
  return `node/${node} cordoned, but not drained within ${limitMs / 1000} s: ${lines.join('; ')}`
}

function nameOf({ metadata: { name, namespace = 'default' } }: Pod): string {
  return `${namespace}/${name}`
}

function hasEnded({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed'
}

function hasController({ metadata }: Pod): boolean {
  return metadata.ownerReferences?.some(({ controller }) => controller === true) === true
}
