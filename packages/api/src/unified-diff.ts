import { structuredPatch } from 'diff'

/** Lines of context around a change. */
const context = 3

/** The hunks of a unified diff without file names; empty if the texts are equal. */
export function unifiedHunks(before: string, after: string): string {
  // Ends both texts with a newline: the marker of a missing one means nothing for an object.
  const { hunks } = structuredPatch('', '', ended(before), ended(after), undefined, undefined, { context })
  return hunks
    .map(({ oldStart, oldLines, newStart, newLines, lines }) =>
      [`@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`, ...lines, ''].join('\n'),
    )
    .join('')
}

function ended(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`
}
