/** A node group of the cloud, as the source or the target of a migration (adoption.md 2). */
import { kinds } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import { type NodeGroup, NodeGroupError, type NodeGroups } from '@tenon/provider'
import { CliError } from '../../errors.ts'
import type { Source } from './move.ts'

export interface GroupOfCluster {
  readonly group: NodeGroup
  readonly groups: NodeGroups
  /** Such as `sks-nodepool workers`. */
  readonly title: string
}

interface Facts {
  readonly client: Pick<KubeClient, 'list'>
  readonly signal: AbortSignal
}

/** A node group by its kind, as the user writes it, and its name or id. */
export interface GroupName {
  readonly kind: string
  readonly name: string
  /** The id of a group of this name that an earlier migration has emptied. */
  readonly knownId?: string
}

/**
 * The group with this name or id that has nodes in this cluster. Names are not unique in a cloud account: a group
 * without nodes here has to be named by its id.
 * @param groups opened for these names alone, with minimum 0, so that the minimum shows which groups are meant.
 * @throws CliError if there is none, or several.
 */
export async function groupNamed(
  { client, signal }: Facts,
  groups: NodeGroups,
  { kind, name, knownId }: GroupName,
): Promise<GroupOfCluster> {
  const title = `${kind} ${name}`
  return await askingCloud(async () => {
    await groups.start?.(signal)
    const nodes = await client.list(kinds.node, { signal })
    const answers = await Promise.all(nodes.map((node) => groups.groupOf(node, signal)))
    const ids = new Set(answers.flatMap((answer) => (answer.kind === 'group' ? [answer.groupId] : [])))
    const isMeant = ({ minSize }: NodeGroup) => minSize === 0
    const here = groups.list().filter((group) => ids.has(group.id) && isMeant(group))
    if (here.length > 1)
      throw new CliError(
        `several node groups are named ${name}: use an id, ${here.map(({ id }) => id).join(' or ')}`,
      )
    if (here[0] !== undefined) return { group: here[0], groups, title }
    await groups.refresh(signal)
    const found = groups.list().filter(isMeant)
    const sure = found.find(({ id }) => id === knownId) ?? found.find((group) => group.name !== name)
    if (sure !== undefined) return { group: sure, groups, title }
    const unresolved = answers.find((answer) => answer.kind === 'unresolved')
    const unknown =
      unresolved && `whether ${title} has a node in this cluster is not known: ${unresolved.reason}`
    if (found[0] === undefined)
      throw new CliError(unknown ?? `there is no ${title} with a node in this cluster`)
    const id = `${kind} ${found[0].id}`
    throw new CliError(
      unknown === undefined
        ? `${title} has no node in this cluster, so that it may be one of another cluster: if it is not, name it by its id, ${id}`
        : `${unknown}; if it is one of this cluster, name it by its id, ${id}`,
    )
  })
}

/** Node groups from which drained nodes are removed. */
export function groupSource(
  { signal }: Pick<Facts, 'signal'>,
  { group, groups, title }: GroupOfCluster,
): Source {
  const memberIds = async () =>
    new Set(
      (await groups.instances(group.id, signal))
        .filter(({ state }) => state !== 'deleting')
        .map(({ providerId }) => providerId),
    )
  return {
    title,
    providerIds: () => askingCloud(memberIds),
    remove: (node) =>
      askingCloud(async () => {
        const { name } = node.metadata
        const { providerID = '' } = node.spec ?? {}
        await groups.refresh(signal)
        if (!(await memberIds()).has(providerID))
          throw new CliError(
            `node/${name} is drained, but ${providerID} is no member of ${title}: it is left alone`,
          )
        await groups.deleteInstances(group.id, [providerID], signal, { belowMinimum: true })
      }),
  }
}

/** @throws CliError for what the cloud refuses. */
export async function askingCloud<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (cause) {
    throw cause instanceof NodeGroupError ? new CliError(cause.message, { cause }) : cause
  }
}
