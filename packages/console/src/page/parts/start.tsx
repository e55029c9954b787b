import type { JSX } from 'preact'
import type { FirstPool, StartAnswer } from '../../answers/facts.ts'
import { absences, mayAct, rowsOf, versionOf } from '../state/store.ts'
import { ActionButton } from './act.tsx'
import { Answer, useAnswer } from './answer.tsx'
import { CopyButton } from './copy.tsx'

/** What to do in a cluster without NodePools; nothing elsewhere (page.md 2). */
export function Start(): JSX.Element | null {
  if (rowsOf('pools').length > 0 || rowsOf('groups').length > 0) return null
  const absent = absences.value.find(({ what }) => what === 'nodepools')
  return (
    <section class="card start" aria-labelledby="start">
      <h2 id="start">Start here</h2>
      {absent === undefined ? (
        <FirstPools />
      ) : (
        <p>
          NodePools are not shown: {absent.why}.
          {absent.why.includes('does not serve') &&
            ' Install Tenon, or its CustomResourceDefinitions, first.'}
        </p>
      )}
    </section>
  )
}

function FirstPools(): JSX.Element {
  const asked = useAnswer<StartAnswer>('/api/start', versionOf('pools'), 10_000)
  return (
    <>
      <p>There is no NodePool yet, so no node is launched for pods that wait.</p>
      <Answer asked={asked} awaits="the cloud that this cluster is in">
        {(answer) =>
          'absent' in answer ? (
            <p>{answer.absent}</p>
          ) : (
            answer.pools.map((pool) => (
              <First key={pool.title} {...pool} isOneOfMany={answer.pools.length > 1} />
            ))
          )
        }
      </Answer>
    </>
  )
}

function First({
  command,
  isOneOfMany,
  manifest,
  nodeClass,
  title,
}: FirstPool & { readonly isOneOfMany: boolean }): JSX.Element {
  return (
    <>
      {isOneOfMany && <h3>{title}</h3>}
      <p>
        A NodePool for {title}
        {nodeClass === undefined ? ', with its node class' : `, of the node class ${nodeClass}`}. Change what
        you like later; it launches nodes of 100 CPUs in sum at most.
      </p>
      <pre class="plain" tabIndex={0} aria-label={`Manifest for ${title}`}>
        {manifest}
      </pre>
      <p class="buttons">
        <ActionButton request={{ kind: 'apply', manifest }} isPrimary>
          Create the NodePool
        </ActionButton>
        <CopyButton text={command} what="command" />
        <CopyButton text={manifest} what="manifest" />
      </p>
      {!mayAct.value && (
        <p class="quiet">This page only reads. Run the command, or start the page with --allow-actions.</p>
      )}
    </>
  )
}
