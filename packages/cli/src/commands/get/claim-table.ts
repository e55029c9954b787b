/** NodeClaims: the columns of the CustomResourceDefinition, the price, and why each is kept. */
import { labels, type NodeClaim } from '@tenon/api'
import {
  conditionStatus,
  framed,
  labelOf,
  none,
  priceColumn,
  type TableOf,
  typeColumns,
  whyColumn,
  whyTextColumn,
} from './cells.ts'

export const claimTable: TableOf<NodeClaim> = (facts) =>
  framed(facts, [
    ...typeColumns,
    { title: 'NODE', value: ({ status }) => status?.nodeName ?? none },
    { title: 'READY', value: (claim) => conditionStatus(claim, 'Ready') },
    priceColumn(facts),
    whyColumn(facts),
    { title: 'IMAGEID', value: ({ status }) => status?.imageID ?? none, isWide: true },
    { title: 'ID', value: ({ status }) => status?.providerID ?? none, isWide: true },
    { title: 'NODEPOOL', value: (claim) => labelOf(claim, labels.nodePool), isWide: true },
    { title: 'NODECLASS', value: ({ spec }) => spec.nodeClassRef.name, isWide: true },
    { title: 'DRIFTED', value: (claim) => conditionStatus(claim, 'Drifted'), isWide: true },
    whyTextColumn(facts),
  ])
