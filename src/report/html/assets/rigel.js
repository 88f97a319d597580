// Draws the charts of a page. Goes in: the data in each figure's script. Comes out: drawings in its plot.
(() => {
  'use strict';
})();
