/** The table of `tenon journal`. */
import { age, type KubeObject, priceText } from '@tenon/api'
import type { DaySavings, JournalEntry } from '@tenon/operator'
import { lineOf } from '@tenon/operator/objects'
import type { Column } from '../../kubectl/output/table.ts'

/** An entry with the metadata that every Kubernetes object has. */
export function objectOf(entry: JournalEntry): KubeObject {
  const { apiVersion, kind, ...rest } = JSON.parse(lineOf(entry)) as KubeObject
  return {
    apiVersion,
    kind,
    ...rest,
    metadata: { name: entry.id, creationTimestamp: `${entry.at.slice(0, 19)}Z` },
  }
}

/** @param nowMs the time that ages refer to. */
export function entryColumns(nowMs: () => number): readonly Column<JournalEntry>[] {
  return [
    { title: 'TYPE', value: ({ kind, observed }) => (observed === true ? `${kind} (observed)` : kind) },
    { title: 'REASON', value: ({ reason }) => reason },
    { title: 'OBJECT', value: objectText },
    { title: 'PRICE/H', value: pricesText },
    { title: 'NODEPOOL', value: ({ nodePool }) => nodePool ?? '<none>', isWide: true },
    {
      title: 'PODS',
      value: ({ pods }) => (pods === undefined ? '<none>' : String(pods.count)),
      isWide: true,
    },
    { title: 'DECISION', value: ({ decision }) => decision ?? '<none>', isWide: true },
    { title: 'AGE', value: ({ at }) => age(at, nowMs()) },
    { title: 'MESSAGE', value: ({ message }) => message },
  ]
}

export const savingsColumns: readonly Column<DaySavings>[] = [
  { title: 'DAY', value: ({ day }) => day },
  { title: 'MOVES', value: ({ moves }) => String(moves) },
  { title: 'UNPRICED', value: ({ unpriced }) => String(unpriced) },
  { title: 'EXPECTED/H', value: ({ expectedPerHour }) => expectedPerHour.toFixed(3) },
  { title: 'EXPECTED', value: ({ expected }) => expected.toFixed(2) },
  { title: 'SAVED', value: ({ saved }) => saved.toFixed(2) },
  { title: 'CURRENCY', value: ({ currency }) => currency ?? '<unknown>' },
]

/** The objects of the entry, Nodes before their claims. */
function objectText({ nodes, nodeClaims, nodePool }: JournalEntry): string {
  const [kind, names] = nodes.length > 0 ? (['node', nodes] as const) : (['nodeclaim', nodeClaims] as const)
  const [first, ...others] = names
  if (first === undefined) return nodePool === undefined ? '<none>' : `nodepool/${nodePool}`
  return `${kind}/${first}${others.length > 0 ? ` +${others.length}` : ''}`
}

function pricesText({ pricePerHour, currency }: JournalEntry): string {
  if (pricePerHour === undefined) return '<none>'
  const { before, after } = pricePerHour
  if (before === undefined && after === undefined) return '<unknown>'
  const amount = (price: number | undefined) => priceText(price, '<unknown>', 3)
  return `${amount(before)} -> ${amount(after)}${currency === undefined ? '' : ` ${currency}`}`
}
