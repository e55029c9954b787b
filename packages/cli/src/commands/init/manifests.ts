/** Prints a plan as YAML, with comments that give reasons. */
import { apiVersionOf, karpenterKinds } from '@tenon/api'
import { Document, isNode } from 'yaml'
import type { Plan, PlannedNodeClass, PlannedPool } from './model.ts'

const columns = 100

/** @param server URL of the cluster. */
export function manifestsOf(plan: Plan, server: string): string {
  const head = [
    `Written by tenon init for ${server} (${plan.title}). Nothing has been applied.`,
    'Read it, check it with tenon validate, then apply it with kubectl apply -f.',
  ]
  const beginning = [...head, ...plan.remarks].map((sentence) => `${comment(sentence)}\n`).join('')
  const documents = [
    ...plan.nodeClasses.map((each) => nodeClassYaml(plan, each)),
    ...plan.pools.map((each) => nodePoolYaml(plan, each)),
  ]
  return [beginning, ...documents.map((text) => `---\n${text}`)].join('')
}

function nodeClassYaml({ nodeClass }: Plan, { name, spec }: PlannedNodeClass): string {
  return textOf(
    new Document({
      apiVersion: apiVersionOf(nodeClass),
      kind: nodeClass.kind,
      metadata: { name },
      spec,
    }),
  )
}

function nodePoolYaml(plan: Plan, pool: PlannedPool): string {
  const { group, kind } = plan.nodeClass
  const document = new Document({
    apiVersion: apiVersionOf(karpenterKinds.nodePool),
    kind: karpenterKinds.nodePool.kind,
    metadata: { name: pool.name },
    spec: {
      template: {
        ...(Object.keys(pool.labels).length > 0 && { metadata: { labels: pool.labels } }),
        spec: {
          nodeClassRef: { group, kind, name: pool.nodeClassName },
          ...(pool.taints.length > 0 && {
            taints: pool.taints.map(({ key, value, effect }) => ({
              key,
              ...(value !== undefined && value !== '' && { value }),
              effect,
            })),
          }),
          requirements: [
            {
              key: 'node.kubernetes.io/instance-type',
              operator: 'In',
              values: [...new Set(pool.instanceTypes)],
            },
          ],
        },
      },
      disruption: { consolidationPolicy: 'WhenEmptyOrUnderutilized', consolidateAfter: '5m' },
      ...(pool.cpuLimit !== undefined && { limits: { cpu: pool.cpuLimit } }),
    },
  })
  note(document, ['spec', 'template', 'spec', 'requirements'], pool.aboutTypes)
  note(
    document,
    ['spec', 'disruption'],
    'Nodes are removed or replaced by cheaper ones once that has been possible for five minutes.',
  )
  if (pool.cpuLimit === undefined)
    document.comment = commentText('No limit: add spec.limits, such as cpu: 100, to bound what is launched.')
  else
    note(
      document,
      ['spec', 'limits'],
      'As much as the largest size of the group; only what Tenon launches counts.',
    )
  return `${pool.remarks.map((sentence) => `${comment(sentence)}\n`).join('')}${textOf(document)}`
}

/** Adds a comment before a key. */
function note(document: Document, path: readonly string[], text: string): void {
  const parent: unknown = document.getIn(path.slice(0, -1), true)
  if (!isMapNode(parent)) return
  const pair = parent.items.find(({ key }) => String(key) === path.at(-1))
  if (isNode(pair?.key)) pair.key.commentBefore = commentText(text)
}

function isMapNode(node: unknown): node is { readonly items: readonly { readonly key: unknown }[] } {
  return typeof node === 'object' && node !== null && 'items' in node && Array.isArray(node.items)
}

function textOf(document: Document): string {
  return document.toString({ lineWidth: 0 })
}

/** A comment of YAML, wrapped. */
export function comment(text: string): string {
  return linesOf(text)
    .map((line) => `# ${line}`)
    .join('\n')
}

/** The library adds the `#`. */
function commentText(text: string): string {
  return linesOf(text)
    .map((line) => ` ${line}`)
    .join('\n')
}

/** Names from the cluster may contain newlines, which must not end a comment. */
function linesOf(text: string): readonly string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + word.length + 1 > columns) {
      lines.push(line)
      line = ''
    }
    line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}
