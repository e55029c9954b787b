import { useState } from 'preact/hooks'
import type { JSX } from 'preact'
import { pauseAction } from '../../actions/pausing.ts'
import type { ActionRequest } from '../../actions/request.ts'
import { askWith } from '../state/questions.ts'
import { mayAct, rowsOf } from '../state/store.ts'
import { Dialog } from './dialog.tsx'

type Stage =
  | { readonly kind: 'asking'; readonly command: string }
  | { readonly kind: 'running'; readonly command: string }
  | { readonly kind: 'done'; readonly text: string }
  | { readonly kind: 'failed'; readonly text: string }

/** A button that shows its command, asks for confirmation and runs it. Not rendered if the page is read-only. */
export function ActionButton({
  request,
  children,
  isPrimary = false,
}: {
  readonly request: ActionRequest
  readonly children: string
  /** Whether it is what most users come for. */
  readonly isPrimary?: boolean
}): JSX.Element | null {
  const [stage, setStage] = useState<Stage>()
  if (!mayAct.value) return null
  const failed = (error: unknown) => {
    setStage({ kind: 'failed', text: error instanceof Error ? error.message : String(error) })
  }
  const show = () => {
    askWith<{ readonly command: string }>('/api/actions', JSON.stringify({ request })).then(
      ({ command }) => setStage({ kind: 'asking', command }),
      failed,
    )
  }
  const run = (command: string) => {
    setStage({ kind: 'running', command })
    askWith<{ readonly done: string }>('/api/actions', JSON.stringify({ request, agreed: command })).then(
      ({ done }) => setStage({ kind: 'done', text: done }),
      failed,
    )
  }
  return (
    <>
      <button type="button" class={isPrimary ? 'primary' : undefined} onClick={show}>
        {children}…
      </button>
      {stage !== undefined && (
        <Dialog title={children} onClose={() => setStage(undefined)}>
          <ActionStage stage={stage} run={run} cancel={() => setStage(undefined)} />
        </Dialog>
      )}
    </>
  )
}

/** Ends or begins a pause of a NodePool or of the cluster. */
export function PauseButton({ nodePool }: { readonly nodePool?: string }): JSX.Element {
  const request = pauseAction(rowsOf('pools'), nodePool)
  const isOfAll = nodePool !== undefined && request.nodePool === undefined
  return (
    <ActionButton request={request}>
      {request.kind === 'pause' ? 'Pause' : isOfAll ? 'Resume the cluster' : 'Resume'}
    </ActionButton>
  )
}

function ActionStage({
  stage,
  run,
  cancel,
}: {
  readonly stage: Stage
  readonly run: (command: string) => void
  readonly cancel: () => void
}): JSX.Element {
  switch (stage.kind) {
    case 'asking':
      return (
        <>
          <p>This will run:</p>
          <pre class="plain">{stage.command}</pre>
          <p class="buttons">
            <button type="button" class="primary" onClick={() => run(stage.command)}>
              Run it
            </button>
            <button type="button" onClick={cancel}>
              Cancel
            </button>
          </p>
        </>
      )
    case 'running':
      return <p role="status">Running…</p>
    case 'done':
      return <p role="status">{stage.text}</p>
    case 'failed':
      return (
        <p role="alert" class="failure">
          {stage.text}
        </p>
      )
  }
}
