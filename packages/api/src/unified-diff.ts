import { structuredPatch } from 'diff'

/** Lines shown before and after a change. */
const context = 3

/** The hunks of a unified diff, without the names of files; empty when the texts are equal. */
export function unifiedHunks(before: string, after: string): string {
  // A last line without its end would be marked as such, which says nothing about an object.
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
