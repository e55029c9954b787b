/** A NodePool, as the source or the target of a migration (adoption.md 2). */
import { isRecord, karpenterKinds, type KubeObject, labels, type NodePool, ownValue } from '@tenon/api'
import type { Snapshot } from '@tenon/ask/snapshot'
import type { KubeClient } from '@tenon/kube'
import { pauseAnnotations, pauseText, readPause } from '@tenon/operator/objects'
import type { NodeGroup } from '@tenon/provider'
import { CliError } from '../../errors.ts'
import { nodePoolKind, notFound } from '../../kubectl/kinds.ts'
import type { Source } from './move.ts'

type Client = Pick<KubeClient, 'delete' | 'get' | 'list' | 'patch'>

interface Facts {
  readonly client: Client
  readonly signal: AbortSignal
}

/** On the NodePool: from which group its pods came, and how many nodes that had. The group's id follows. */
const originPrefix = 'tenon.sh/migrated-'
/** Replacements of nodes are launches, so expiration and repair wait too. */
const migrationPause = pauseText({
  reason: 'tenon migrate moves its pods to a node group',
  includes: ['launches', 'expiration', 'repair'],
})

/** A node group whose nodes a NodePool has replaced. */
export interface Origin {
  readonly id: string
  readonly name: string
  readonly nodes: number
}

export async function poolOf({ client, signal }: Facts, name: string): Promise<NodePool> {
  const pool = await client.get(karpenterKinds.nodePool, { name }, { signal })
  if (pool === undefined) throw notFound(nodePoolKind, name)
  return pool
}

/** Why it launches no nodes; undefined if it does. */
export function whyNoLaunches({ metadata, status }: NodePool, nowMs: number): string | undefined {
  const { name } = metadata
  if (metadata.deletionTimestamp !== undefined) return `nodepool ${name} is being deleted`
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  if (ready?.status !== 'True')
    return `nodepool ${name} is not Ready${ready?.message === undefined ? '' : `: ${ready.message}`}`
  const text = ownValue(metadata.annotations, pauseAnnotations.person)
  if (text === undefined || text === migrationPause) return undefined
  const reading = readPause(text)
  const holds =
    reading.kind !== 'none' &&
    reading.value.includes.includes('launches') &&
    (reading.value.untilMs ?? Number.POSITIVE_INFINITY) > nowMs
  return holds ? `launches of nodepool ${name} are paused: tenon resume nodepool/${name}` : undefined
}

/**
 * Stops launches of a NodePool for good, unless that is done.
 * @throws CliError beside a pause by a person, which would have to be replaced.
 */
export async function pauseLaunches({ client }: Facts, { metadata }: NodePool): Promise<boolean> {
  const { name } = metadata
  const text = ownValue(metadata.annotations, pauseAnnotations.person)
  if (text === migrationPause) return false
  if (text !== undefined && readPause(text).kind !== 'none')
    throw new CliError(
      `nodepool ${name} is paused by somebody, and its launches have to be: tenon resume nodepool/${name} first`,
    )
  await annotated(client, name, { [pauseAnnotations.person]: migrationPause })
  return true
}

/** The snapshot as it will be when {@link resumeLaunches} has ended the pause: the engine does not ask paused NodePools. */
export function withoutMigrationPause(snapshot: Snapshot): Snapshot {
  const isPaused = ({ kind, metadata }: KubeObject) =>
    kind === karpenterKinds.nodePool.kind &&
    ownValue(metadata.annotations, pauseAnnotations.person) === migrationPause
  const objects = snapshot.objects.map((object) => {
    if (!isPaused(object)) return object
    const { [pauseAnnotations.person]: _, ...annotations } = object.metadata.annotations ?? {}
    return { ...object, metadata: { ...object.metadata, annotations } }
  })
  return { ...snapshot, objects }
}

/** Ends the pause of a migration in the other direction, if there is one. */
export async function resumeLaunches({ client }: Facts, { metadata }: NodePool): Promise<boolean> {
  if (ownValue(metadata.annotations, pauseAnnotations.person) !== migrationPause) return false
  await annotated(client, metadata.name, { [pauseAnnotations.person]: null })
  return true
}

/** Remembers the size of a group before its first node goes. */
export async function rememberOrigin(
  { client }: Facts,
  { metadata }: NodePool,
  { id, name, targetSize }: NodeGroup,
): Promise<void> {
  const key = `${originPrefix}${id}`
  const text = JSON.stringify({ name, nodes: targetSize })
  if (ownValue(metadata.annotations, key) !== text) await annotated(client, metadata.name, { [key]: text })
}

/** What a person has written in place of it is ignored. */
export function originsOf({ metadata }: NodePool): readonly Origin[] {
  return Object.entries(metadata.annotations ?? {}).flatMap(([key, text]) => {
    if (!key.startsWith(originPrefix)) return []
    const read = readJson(text)
    if (!isRecord(read)) return []
    const { name, nodes } = read
    const isNumber = typeof nodes === 'number' && Number.isSafeInteger(nodes) && nodes > 0
    return typeof name === 'string' && isNumber ? [{ id: key.slice(originPrefix.length), name, nodes }] : []
  })
}

/** Nodes of a NodePool, which go with their NodeClaims. */
export function poolSource({ client, signal }: Facts, name: string): Source {
  const claims = async () =>
    await client.list(karpenterKinds.nodeClaim, {
      labelSelector: { matchLabels: { [labels.nodePool]: name } },
      signal,
    })
  return {
    title: `nodepool ${name}`,
    providerIds: async () =>
      new Set(
        (await claims()).flatMap(({ metadata, status }) =>
          metadata.deletionTimestamp === undefined ? (status?.providerID ?? []) : [],
        ),
      ),
    remove: async (node) => {
      const { providerID } = node.spec ?? {}
      const those = (await claims()).filter(({ status }) => status?.providerID === providerID)
      const [claim] = those
      if (claim === undefined || those.length > 1 || providerID === undefined)
        throw new CliError(
          `node/${node.metadata.name} is drained, but ${those.length} NodeClaims of nodepool ${name} have its provider ID: it is left alone`,
        )
      const { name: claimName, uid = '' } = claim.metadata
      await client.delete(karpenterKinds.nodeClaim, { name: claimName }, { preconditionUid: uid, signal })
    },
  }
}

async function annotated(
  client: Client,
  name: string,
  annotations: Readonly<Record<string, string | null>>,
): Promise<void> {
  await client.patch(karpenterKinds.nodePool, { name }, { metadata: { annotations } })
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
