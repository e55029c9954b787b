/** Applies NodePools that were edited on the page. */
import { karpenterKinds, type NodePool } from '@tenon/api'
import { mergePatchOf } from '@tenon/kube'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import type { ClusterConnection } from '../../kubectl/connection.ts'
import type { ClusterFlags } from '../../kubectl/flags.ts'
import { command, quoted } from './action-command.ts'
import { writtenObject, readTypedManifests } from './manifests.ts'

/** A NodePool to create, or a patch of an existing one. */
export type PoolChange =
  | { readonly kind: 'create'; readonly pool: NodePool }
  | { readonly kind: 'patch'; readonly name: string; readonly patch: object }

/**
 * The changes that turn the NodePools of the cluster into those of the manifest.
 * @throws CliError if the manifest contains anything but valid NodePools, or changes nothing.
 */
export async function poolChanges(
  io: Pick<Io, 'cwd'>,
  { client }: Pick<ClusterConnection, 'client'>,
  manifest: string,
): Promise<readonly PoolChange[]> {
  const { objects, problems } = await readTypedManifests(io, manifest)
  const wrong = problems.find(({ severity }) => severity === 'error')
  if (wrong !== undefined) throw new CliError(`${wrong.line}:${wrong.column}: ${wrong.message}`)
  const foreign = objects.find(({ kind }) => kind !== karpenterKinds.nodePool.kind)
  if (foreign !== undefined) throw new CliError(`${foreign.kind} ${foreign.metadata.name} is no NodePool`)
  const changes: PoolChange[] = []
  for (const object of objects) {
    const { name } = object.metadata
    const known = await client.get(karpenterKinds.nodePool, { name })
    if (known === undefined) {
      changes.push({ kind: 'create', pool: object as NodePool })
      continue
    }
    const patch = mergePatchOf(changeable(known), changeable(object as NodePool))
    if (patch !== undefined) changes.push({ kind: 'patch', name, patch })
  }
  if (changes.length === 0) throw new CliError('nothing to apply: the cluster has it so')
  return changes
}

/** The fields of a NodePool that users set, besides its name. */
function changeable(pool: NodePool): object {
  const { metadata, spec } = writtenObject(pool)
  const { annotations = {}, labels = {} } = metadata
  return { metadata: { annotations, labels }, spec }
}

export function changeCommand(change: PoolChange, flags: ClusterFlags): string {
  if (change.kind === 'create')
    return `${command(flags, 'kubectl create -f -')} <<'END'\n${JSON.stringify(change.pool, undefined, 2)}\nEND`
  const patch = quoted(JSON.stringify(change.patch))
  return command(flags, 'kubectl patch nodepool', change.name, '--type=merge', '-p', patch)
}

/** @returns what was done. */
export async function changed(
  { client }: Pick<ClusterConnection, 'client'>,
  change: PoolChange,
): Promise<string> {
  if (change.kind === 'create') {
    await client.create(karpenterKinds.nodePool, change.pool)
    return `nodepool.karpenter.sh/${change.pool.metadata.name} created`
  }
  await client.patch(karpenterKinds.nodePool, { name: change.name }, change.patch)
  return `nodepool.karpenter.sh/${change.name} patched`
}
