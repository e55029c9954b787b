import { counted } from '@tenon/api/counted'
import type { JSX } from 'preact'
import { priceText } from '../format.ts'
import { type FleetNode, isSimulated } from '../state/fleet.ts'
import { Name } from './name.tsx'
import { ObjectLink } from './object-link.tsx'

const words: Readonly<Record<FleetNode['role'], string>> = {
  stays: '',
  goes: 'goes',
  comes: 'comes',
}

/** The nodes at a time as squares; those that are added or removed are marked and named. */
export function Fleet({
  title,
  nodes,
}: {
  readonly title: string
  readonly nodes: readonly FleetNode[]
}): JSX.Element {
  const marked = nodes.filter(({ role }) => role !== 'stays')
  const prices = nodes.map(({ pricePerHour }) => pricePerHour)
  const known = prices.filter((price) => price !== undefined)
  const sum = known.reduce((all, price) => all + price, 0)
  return (
    <section>
      <h3>
        {title}: {counted(nodes.length, 'node')}, {priceText(sum)}
        {known.length < prices.length && ` ?${prices.length - known.length}`} per hour
      </h3>
      <div class="fleet" aria-hidden="true">
        {nodes.map((node) => (
          <span key={node.name} class={node.role} title={`${node.name} ${node.type ?? ''}`} />
        ))}
      </div>
      <ul>
        {marked.map((node) => (
          <li key={node.name}>
            {words[node.role]}:{' '}
            {isSimulated(node) ? 'a node' : <ObjectLink kind="NodeClaim" name={node.name} />}{' '}
            <Name name={node.type ?? '?'} /> {priceText(node.pricePerHour)}
          </li>
        ))}
      </ul>
    </section>
  )
}
